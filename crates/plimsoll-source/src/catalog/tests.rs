//! Catalogs from files, and from the cache.

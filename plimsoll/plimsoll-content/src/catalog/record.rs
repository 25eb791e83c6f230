//! Reading JSON without copying it: texts that borrow, lists with a limit, objects whose keys are
//! matched as Go matches them (upper and lower case are the same).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use plimsoll_resolve::version::number_for_text;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// Most items of a list in a catalog's document. The longest of real ones have some 400.
pub const LIST_MAX: usize = 100_000;

/// A text that is borrowed from where it was read, unless it was escaped there.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    /// The text, at most as long-lived as the value.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A text that borrows from this one.
    pub fn borrowed(&'a self) -> Self {
        Self(Cow::Borrowed(&self.0))
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Formats for people say which other value there is; the index does not need to.
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(TextVisitor)
        } else {
            deserializer.deserialize_str(TextVisitor)
        }
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text::from(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Text<'de>, E> {
        Err(unquoted(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Text<'de>, E> {
        Err(unquoted(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Text<'de>, E> {
        Err(unquoted(number))
    }
}

/// The error of a number that stands where text is meant.
fn unquoted<E: Error>(number: impl fmt::Display) -> E {
    E::custom(format_args!("a value {}", number_for_text(number)))
}

/// A list of at most [`LIST_MAX`] items; null is an empty one.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == LIST_MAX {
                return Err(A::Error::custom(format_args!("a list of more than {LIST_MAX} items")));
            }
            list.push(item);
        }
        Ok(List(list))
    }
}

/// Defines a struct of optional fields that is read from a JSON object: keys in any case, unknown
/// ones skipped, null as if it were not there, a key twice an error.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty = $key:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            $(pub(super) $field: Option<$type>,)*
            pub(super) borrows: std::marker::PhantomData<&'a str>,
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Fields<'a>(std::marker::PhantomData<&'a str>);

                impl<'de: 'a, 'a> serde::de::Visitor<'de> for Fields<'a> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut entries: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut record = $name::default();
                        while let Some(key) = entries.next_key::<$crate::catalog::record::Text<'de>>()? {
                            $(if key.eq_ignore_ascii_case($key) {
                                if record.$field.is_some() {
                                    let text = concat!("the key `", $key, "` occurs twice");
                                    return Err(serde::de::Error::custom(text));
                                }
                                record.$field = entries.next_value()?;
                                continue;
                            })*
                            entries.next_value::<serde::de::IgnoredAny>()?;
                        }
                        Ok(record)
                    }
                }

                from.deserialize_map(Fields(std::marker::PhantomData))
            }
        }
    };
}

pub(super) use record;

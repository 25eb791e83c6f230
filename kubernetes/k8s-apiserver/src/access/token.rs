//! Signed tokens: JWTs in their compact form, with one algorithm only (EdDSA).
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::{Value, json};

use super::keys::{Purpose, RootSecret};

/// Signs and verifies tokens.
#[derive(Debug)]
pub(crate) struct Signer {
    key: Ed25519KeyPair,
    header: String,
}

/// Why a token is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    /// It was not issued by this issuer, or is no token at all.
    #[error("not a token of this issuer")]
    Foreign,
    /// It names this issuer, but the signature is wrong.
    #[error("invalid signature")]
    Signature,
}

impl Signer {
    /// The signer of a cluster.
    pub(crate) fn new(secret: &RootSecret) -> Self {
        let pkcs8 = secret.pkcs8(Purpose::ServiceAccounts);
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8)
            .expect("the key was put together in this form");
        let header = json!({"alg": "EdDSA", "kid": key_id(&key)});
        Self { key, header: URL_SAFE_NO_PAD.encode(header.to_string()) }
    }

    /// The public key as a JSON web key set (RFC 7517, RFC 8037).
    pub(crate) fn key_set(&self) -> Value {
        json!({"keys": [{
            "use": "sig",
            "kty": "OKP",
            "kid": key_id(&self.key),
            "crv": "Ed25519",
            "alg": "EdDSA",
            "x": URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref()),
        }]})
    }

    /// Signs a token with `claims`.
    ///
    /// Upstream: k8s.io/kubernetes/pkg/serviceaccount/jwt.go: GenerateToken
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let signed = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// Verifies a token and returns its claims.
    ///
    /// # Errors
    /// When the token does not name `issuer`, or its signature is wrong.
    ///
    /// Upstream: k8s.io/kubernetes/pkg/serviceaccount/jwt.go: AuthenticateToken
    pub(crate) fn verify(&self, token: &str, issuer: &str) -> Result<Value, TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Foreign)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Foreign)?;
        let claims: Value = URL_SAFE_NO_PAD
            .decode(claims)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or(TokenError::Foreign)?;
        if claims["iss"] != issuer {
            return Err(TokenError::Foreign);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Signature)?;
        let key = UnparsedPublicKey::new(&ED25519, self.key.public_key().as_ref());
        let is_ours = header == self.header && key.verify(signed.as_bytes(), &signature).is_ok();
        if is_ours { Ok(claims) } else { Err(TokenError::Signature) }
    }
}

/// The id of a key: the digest of its public key.
fn key_id(key: &Ed25519KeyPair) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, key.public_key().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::KeySource;

    #[test]
    fn only_tokens_with_our_signature_are_ours() {
        let signer = Signer::new(&RootSecret::new(KeySource::Seed(1)));
        let claims = json!({"iss": "me", "sub": "x"});
        let token = signer.sign(&claims);
        assert_eq!(signer.sign(&claims), token, "the same claims give the same token");
        assert_eq!(signer.verify(&token, "me"), Ok(claims.clone()));
        assert_eq!(signer.verify(&token, "you"), Err(TokenError::Foreign));
        assert_eq!(signer.verify("a.b.c", "me"), Err(TokenError::Foreign));
        assert_eq!(signer.verify("", "me"), Err(TokenError::Foreign));
        assert_eq!(
            Signer::new(&RootSecret::new(KeySource::Seed(2))).verify(&token, "me"),
            Err(TokenError::Signature)
        );
        let (signed, _) = token.rsplit_once('.').expect("a token has three parts");
        assert_eq!(signer.verify(&format!("{signed}."), "me"), Err(TokenError::Signature));
        let unsigned = json!({"alg": "none"}).to_string();
        let forged = format!(
            "{}.{}.",
            URL_SAFE_NO_PAD.encode(unsigned),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        assert_eq!(signer.verify(&forged, "me"), Err(TokenError::Signature));
    }
}

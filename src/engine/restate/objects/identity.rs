//! The signatures of the server, checked by ring, which is here for TLS already.
//!
//! The SDK judges the whole token, and leaves the arithmetic to a provider.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use ring::signature::{ED25519, UnparsedPublicKey};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Has signatures checked here, in the whole process.
pub(super) fn install() {
    // An error says that it was installed before.
    let _ = PROVIDER.install_default();
}

/// The check of a signature of Ed25519, the only kind that the server makes.
struct Ed25519Verifier(UnparsedPublicKey<Vec<u8>>);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the provider has functions of this kind")]
fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Ed25519Verifier(UnparsedPublicKey::new(&ED25519, key.as_bytes().to_vec()))))
}

impl Verifier<Vec<u8>> for Ed25519Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.0.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Ed25519Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

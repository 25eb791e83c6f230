//! The wire format: numbered fields that hold a number, eight bytes, or bytes with a length.
//!
//! Upstream: google.golang.org/protobuf/encoding/protowire/wire.go: ConsumeField
use super::ProtobufError;

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;
const FIXED_32: u8 = 5;

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    Number(u64),
    Eight([u8; 8]),
    Four,
    Bytes(&'a [u8]),
}

pub(super) fn malformed(path: &str) -> ProtobufError {
    ProtobufError::Malformed { path: path.to_owned() }
}

impl<'a> Content<'a> {
    pub(super) fn bytes(self, path: &str) -> Result<&'a [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) | Self::Eight(_) | Self::Four => Err(malformed(path)),
        }
    }

    pub(super) fn text(self, path: &str) -> Result<String, ProtobufError> {
        let bytes = self.bytes(path)?;
        // Go takes any bytes as text, and shows what is not UTF-8 as its replacement.
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn integer(self, path: &str) -> Result<i64, ProtobufError> {
        match self {
            Self::Number(number) => Ok(number.cast_signed()),
            Self::Eight(_) | Self::Four | Self::Bytes(_) => Err(malformed(path)),
        }
    }

    pub(super) fn double(self, path: &str) -> Result<f64, ProtobufError> {
        match self {
            Self::Eight(bytes) => Ok(f64::from_le_bytes(bytes)),
            Self::Number(_) | Self::Four | Self::Bytes(_) => Err(malformed(path)),
        }
    }
}

/// Reads the fields of one message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    path: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], path: &'a str) -> Self {
        Self { rest: bytes, path }
    }

    /// The next field; none at the end.
    pub(super) fn next_field(&mut self) -> Result<Option<(u32, Content<'a>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| malformed(self.path))?;
        let content = match (key & 7) as u8 {
            VARINT => Content::Number(self.varint()?),
            FIXED_64 => {
                let bytes = self.take(8)?;
                Content::Eight(bytes.try_into().map_err(|_| malformed(self.path))?)
            }
            LENGTH_DELIMITED => {
                let length = usize::try_from(self.varint()?).map_err(|_| malformed(self.path))?;
                Content::Bytes(self.take(length)?)
            }
            FIXED_32 => {
                self.take(4)?;
                Content::Four
            }
            _ => return Err(malformed(self.path)),
        };
        Ok(Some((number, content)))
    }

    /// All that is left as packed numbers.
    pub(super) fn next_packed(&mut self) -> Result<Option<u64>, ProtobufError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| malformed(self.path))?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed(self.path))
    }
}

/// Writes the fields of one message.
#[derive(Default)]
pub(super) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub(super) fn starting_with(bytes: &[u8]) -> Self {
        Self { out: bytes.to_vec() }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.out
    }

    pub(super) fn integer(&mut self, number: u32, value: i64) {
        self.key(number, VARINT);
        self.varint(value.cast_unsigned());
    }

    pub(super) fn double(&mut self, number: u32, value: f64) {
        self.key(number, FIXED_64);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.key(number, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.out.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, number: u32, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    fn key(&mut self, number: u32, wire_type: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }
}

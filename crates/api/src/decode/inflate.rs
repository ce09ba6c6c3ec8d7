//! Unpacking of gzip and zlib bodies inside the request's own memory, in steps, up to a limit that is checked while
//! unpacking: a small body may stand for a huge one. The decoder runs it before it reads the body.

use flate2::{Decompress, FlushDecompress, Status};
use insula_core::{Code, Error, Result, TensorSink};

use crate::format::ContentEncoding;

/// The first room for unpacked bytes; it doubles from there.
const FIRST_ROOM: usize = 64 << 10;

/// The base-2 logarithm of the window of gzip and zlib.
const WINDOW_BITS: u8 = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zlib,
}

impl Packing {
    fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Zlib => "deflate (zlib)",
        }
    }

    fn stream(self) -> Decompress {
        match self {
            // checks header, CRC and length of every member by itself
            Packing::Gzip => Decompress::new_gzip(WINDOW_BITS),
            Packing::Zlib => Decompress::new(true),
        }
    }
}

/// A body being unpacked.
pub(super) struct Inflate {
    packing: Packing,
    stream: Decompress,
    read: usize,
    written: usize,
    room: usize,
    limit: usize,
}

impl Inflate {
    /// An unpacker for `encoding` that refuses more than `limit` bytes; `None` when there is nothing to unpack.
    pub(super) fn new(encoding: ContentEncoding, limit: usize) -> Option<Box<Inflate>> {
        let packing = match encoding {
            ContentEncoding::Identity => return None,
            ContentEncoding::Gzip => Packing::Gzip,
            ContentEncoding::Deflate => Packing::Zlib,
        };
        Some(Box::new(Inflate { packing, stream: packing.stream(), read: 0, written: 0, room: 0, limit }))
    }

    /// Unpacks about `budget` bytes on, counted on the larger side. `Some(what is left of the budget)` when all is done.
    pub(super) fn step(&mut self, sink: &mut dyn TensorSink, budget: usize) -> Result<Option<usize>> {
        let mut left = budget;
        while left > 0 {
            let (status, used) = self.unpack(sink, left)?;
            left = left.saturating_sub(used.max(1));
            if status == Status::StreamEnd {
                let packed_length = sink.unpack_room().0.len();
                if self.read == packed_length {
                    sink.unpack_finish(self.written)?;
                    return Ok(Some(left));
                }
                self.next_member(packed_length)?;
                // a member costs a new state, however short it is
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// One call of the unpacker; returns its status and how far it came.
    fn unpack(&mut self, sink: &mut dyn TensorSink, left: usize) -> Result<(Status, usize)> {
        if self.written == self.room && self.room < self.limit {
            self.room = self.limit.min(FIRST_ROOM.max(self.room.saturating_mul(2)));
            sink.unpack_reserve(self.room)?;
        }
        let (packed, room) = sink.unpack_room();
        let input = &packed[self.read..packed.len().min(self.read.saturating_add(left))];
        // when the limit is reached, one byte of our own tells whether more would come
        let mut beyond = [0];
        let full = self.written == self.limit;
        let output = if full {
            &mut beyond[..]
        } else {
            let end = self.room.min(self.written.saturating_add(left));
            room.get_mut(self.written..end).unwrap_or_default()
        };
        let (before_in, before_out) = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.decompress(input, output, FlushDecompress::None).map_err(|error| {
            let why = error.message().unwrap_or("it is damaged").to_owned();
            Error::invalid(format!("the body is not valid {}: {why}", self.packing.name()))
        })?;
        let count = |before: u64, after: u64| usize::try_from(after - before).unwrap_or(usize::MAX);
        let consumed = count(before_in, self.stream.total_in());
        let produced = count(before_out, self.stream.total_out());
        if full && produced > 0 {
            return Err(Error::new(
                Code::PayloadTooLarge,
                format!("the {} body unpacks to more than the limit of {} bytes", self.packing.name(), self.limit),
            ));
        }
        if consumed == 0 && produced == 0 && status != Status::StreamEnd {
            let name = self.packing.name();
            return Err(Error::invalid(format!(
                "the {name} body ends before its last byte, after {} bytes",
                self.read
            )));
        }
        self.read += consumed;
        self.written += produced;
        Ok((status, consumed.max(produced)))
    }

    /// Goes on with the next member of a gzip file; a zlib stream has only one.
    fn next_member(&mut self, packed_length: usize) -> Result<()> {
        if self.packing == Packing::Gzip {
            self.stream = self.packing.stream();
            return Ok(());
        }
        let count = packed_length - self.read;
        Err(Error::invalid(format!("{count} bytes follow the end of the {} body", self.packing.name())))
    }
}

//! The writing end of a ring with loom's atomics: every order of the two sides' steps that the
//! memory model allows. The reader does what the harvester does.
#![allow(missing_docs, dead_code)]

use loom::sync::Arc;
use loom::thread;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}
use atomic::{AtomicU64, Ordering};

pub(crate) struct Record {
    pub(crate) stamp: AtomicU64,
    pub(crate) word: AtomicU64,
}

#[path = "../src/event_ring.rs"]
mod event_ring;
use event_ring::{RingMemory, RingWriter};

struct Ring {
    head: AtomicU64,
    lost: AtomicU64,
    tail: AtomicU64,
    records: Vec<Record>,
}

const CAPACITY: usize = 2;
const EVENTS: u64 = 3;

impl Ring {
    fn new() -> Ring {
        let record = || Record {
            stamp: AtomicU64::new(0),
            word: AtomicU64::new(0),
        };
        Ring {
            head: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            records: (0..CAPACITY).map(|_| record()).collect(),
        }
    }

    /// Takes what is there; gives back the room afterwards.
    fn take(&self, taken: &mut Vec<u64>) {
        let head = self.head.load(Ordering::Acquire);
        for position in taken.len() as u64..head {
            let record = &self.records[position as usize % CAPACITY];
            let word = record.word.load(Ordering::Relaxed);
            assert_eq!(
                record.stamp.load(Ordering::Relaxed),
                word,
                "a mixture of two records"
            );
            taken.push(word);
        }
        self.tail.store(taken.len() as u64, Ordering::Release);
    }
}

fn write_events(ring: &Ring) {
    let writer = RingWriter::without_ring();
    writer.attach(RingMemory {
        head: &ring.head,
        lost: &ring.lost,
        tail: &ring.tail,
        records: &ring.records,
    });
    for event in 1..=EVENTS {
        if !writer.seems_full() || writer.look_for_room() {
            writer.write(event, event);
        }
    }
}

#[test]
fn what_is_taken_was_written_once_and_in_order_and_the_rest_is_counted() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        let writing = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || write_events(&ring))
        };
        let mut taken = Vec::new();
        ring.take(&mut taken);
        ring.take(&mut taken);
        writing.join().unwrap();
        ring.take(&mut taken);
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]), "{taken:?}");
        assert_eq!(
            taken.len() as u64 + ring.lost.load(Ordering::Relaxed),
            EVENTS
        );
    });
}

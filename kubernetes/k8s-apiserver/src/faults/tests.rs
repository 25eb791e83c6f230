//! Chance: as often as said, the same every time, and fitting.
use super::Fault;
use super::chance::{choose, hits};

#[test]
fn chance_is_the_same_for_the_same_seed_and_as_frequent_as_said() {
    for seed in [0, 1, u64::MAX] {
        let draw = || -> Vec<Option<Fault>> {
            (0..10_000).map(|position| choose(seed, position, 0.1, true, false)).collect()
        };
        let faults = draw();
        assert_eq!(faults, draw());
        let shares = [
            faults.iter().flatten().count(),
            (0..10_000).filter(|position| hits(seed, *position, 0.1)).count(),
        ];
        for hits in shares {
            assert!((900..1_100).contains(&hits), "{hits} of 10000 with seed {seed}");
        }
    }
    assert_eq!(choose(7, 3, 0.0, true, true), None);
    assert!(choose(7, 3, 1.0, true, true).is_some());
}

#[test]
fn a_fault_fits_its_request() {
    for position in 0..1_000 {
        let read = choose(5, position, 1.0, false, false);
        assert_ne!(read, Some(Fault::refused(409)), "a read does not conflict");
        assert!(!closes(read.as_ref()), "only watches are closed");
        let watch = choose(5, position, 1.0, false, true);
        assert_ne!(watch, Some(Fault::AnswerLost), "a watch has no end to lose");
    }
    assert!((0..100).any(|position| closes(choose(5, position, 1.0, false, true).as_ref())));
}

fn closes(fault: Option<&Fault>) -> bool {
    matches!(fault, Some(Fault::WatchClosed(_) | Fault::WatchBroken(_)))
}

// SPDX-License-Identifier: GPL-2.0

//! Every event in every state that can be reached, against the table in `docs/request-states.md`.

use super::*;
use std::{collections::HashSet, format, string::String, vec::Vec};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Take,
    EnterCopy,
    LeaveCopy,
    ReadDone,
    ReadFailed,
    Answer,
    Answered,
    Signal,
    FatalSignal,
    TakeInterrupt,
    InterruptAgain,
    Resend,
    Abort,
}

use Event::*;

const EVENTS: [Event; 13] = [
    Take,
    EnterCopy,
    LeaveCopy,
    ReadDone,
    ReadFailed,
    Answer,
    Answered,
    Signal,
    FatalSignal,
    TakeInterrupt,
    InterruptAgain,
    Resend,
    Abort,
];

impl Event {
    fn name(self) -> &'static str {
        match self {
            Take => "take",
            EnterCopy => "enter_copy",
            LeaveCopy => "leave_copy",
            ReadDone => "read_done",
            ReadFailed => "read_failed",
            Answer => "answer",
            Answered => "answered",
            Signal => "signal",
            FatalSignal => "fatal_signal",
            TakeInterrupt => "take_interrupt",
            InterruptAgain => "interrupt_again",
            Resend => "resend",
            Abort => "abort",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Duty {
    Nothing,
    End,
    QueueInterrupt,
    SendInterrupt,
    Requeue,
}

impl Duty {
    fn text(self) -> &'static str {
        match self {
            Duty::Nothing => "",
            Duty::End => "end it",
            Duty::QueueInterrupt => "queue an INTERRUPT",
            Duty::SendInterrupt => "send the INTERRUPT",
            Duty::Requeue => "queue it again",
        }
    }
}

/// What an event says: a duty, or a refusal where it can refuse.
fn apply(state: &mut RequestState, event: Event) -> Result<Duty, Refused> {
    let end = |_: End| Duty::End;
    let maybe_end = |end: Option<End>| end.map_or(Duty::Nothing, |_| Duty::End);
    let queue = |queue: bool| match queue {
        true => Duty::QueueInterrupt,
        false => Duty::Nothing,
    };
    match event {
        Take => state.take().map(|()| Duty::Nothing),
        EnterCopy => state.enter_copy().map(|()| Duty::Nothing),
        LeaveCopy => state.leave_copy().map(maybe_end),
        ReadDone => state.read_done().map(|read| match read {
            Read::Sent => Duty::Nothing,
            Read::QueueInterrupt => Duty::QueueInterrupt,
            Read::End(_) => Duty::End,
        }),
        ReadFailed => state.read_failed().map(end),
        Answer => state.answer().map(|()| Duty::Nothing),
        Answered => state.answered().map(end),
        Signal => Ok(queue(state.signal())),
        FatalSignal => Ok(maybe_end(state.fatal_signal())),
        TakeInterrupt => state.take_interrupt().map(|()| Duty::SendInterrupt),
        InterruptAgain => Ok(queue(state.interrupt_again())),
        Resend => Ok(match state.resend() {
            true => Duty::Requeue,
            false => Duty::Nothing,
        }),
        Abort => Ok(maybe_end(state.abort())),
    }
}

/// All states that any order of events leads to.
fn reachable() -> HashSet<RequestState> {
    let new = RequestState::new();
    let mut todo = Vec::from([new, new.force(), new.no_reply(), new.force().no_reply()]);
    let mut seen = HashSet::new();
    while let Some(state) = todo.pop() {
        if seen.insert(state) {
            todo.extend(EVENTS.map(|event| {
                let mut next = state;
                let _ = apply(&mut next, event);
                next
            }));
        }
    }
    seen
}

/// A phase, and whether a copier is inside its copy section.
type Place = (Phase, bool);

const PENDING: Place = (Phase::Pending, false);
const READING: Place = (Phase::Reading, false);
const READING_INSIDE: Place = (Phase::Reading, true);
const SENT: Place = (Phase::Sent, false);
const ANSWERING: Place = (Phase::Answering, false);
const ANSWERING_INSIDE: Place = (Phase::Answering, true);
const FINISHED: Place = (Phase::Finished, false);

fn place(state: &RequestState) -> Place {
    (state.phase, state.inside)
}

fn place_name((phase, inside): Place) -> String {
    format!("{phase:?}{}", if inside { ", inside" } else { "" })
}

/// A condition on the marks, and its words.
type When = (&'static str, fn(&RequestState) -> bool);

const ALWAYS: When = ("", |_| true);
const NOT_FORCE: When = ("not `force`", |s| !s.force);
const NO_REPLY: When = ("`no_reply`", |s| s.no_reply);
const INTERRUPT_DUE: When = ("`interrupted`, no INTERRUPT queued", |s| {
    !s.no_reply && s.interrupted && !s.interrupt_queued
});
const NO_INTERRUPT_DUE: When = ("else", |s| {
    !s.no_reply && (!s.interrupted || s.interrupt_queued)
});
const FIRST_SIGNAL: When = ("not `interrupted`", |s| !s.interrupted);
const ABORTED: When = ("`aborted`", |s| s.aborted);
const NOT_ABORTED: When = ("not `aborted`", |s| !s.aborted);

type Row = (Place, Event, When, Place, Duty);

/// What happens. An event that is not here changes nothing, apart from the mark that
/// `take_interrupt` takes away, and is refused where it can be.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    (PENDING, Take, ALWAYS, READING, Duty::Nothing),
    (PENDING, Signal, FIRST_SIGNAL, PENDING, Duty::Nothing),
    (PENDING, FatalSignal, NOT_FORCE, FINISHED, Duty::End),
    (PENDING, Abort, ALWAYS, FINISHED, Duty::End),
    (READING, EnterCopy, ALWAYS, READING_INSIDE, Duty::Nothing),
    (READING, ReadDone, NO_REPLY, FINISHED, Duty::End),
    (READING, ReadDone, INTERRUPT_DUE, SENT, Duty::QueueInterrupt),
    (READING, ReadDone, NO_INTERRUPT_DUE, SENT, Duty::Nothing),
    (READING, ReadFailed, ALWAYS, FINISHED, Duty::End),
    (READING, Signal, FIRST_SIGNAL, READING, Duty::Nothing),
    (READING, Abort, ALWAYS, FINISHED, Duty::End),
    (READING_INSIDE, LeaveCopy, ABORTED, FINISHED, Duty::End),
    (READING_INSIDE, LeaveCopy, NOT_ABORTED, READING, Duty::Nothing),
    (READING_INSIDE, Signal, FIRST_SIGNAL, READING_INSIDE, Duty::Nothing),
    (READING_INSIDE, Abort, NOT_ABORTED, READING_INSIDE, Duty::Nothing),
    (SENT, Answer, ALWAYS, ANSWERING, Duty::Nothing),
    (SENT, Signal, FIRST_SIGNAL, SENT, Duty::QueueInterrupt),
    (SENT, TakeInterrupt, ALWAYS, SENT, Duty::SendInterrupt),
    (SENT, InterruptAgain, INTERRUPT_DUE, SENT, Duty::QueueInterrupt),
    (SENT, Resend, ALWAYS, PENDING, Duty::Requeue),
    (SENT, Abort, ALWAYS, FINISHED, Duty::End),
    (ANSWERING, EnterCopy, ALWAYS, ANSWERING_INSIDE, Duty::Nothing),
    (ANSWERING, Answered, ALWAYS, FINISHED, Duty::End),
    (ANSWERING, Signal, FIRST_SIGNAL, ANSWERING, Duty::Nothing),
    (ANSWERING, Abort, ALWAYS, FINISHED, Duty::End),
    (ANSWERING_INSIDE, LeaveCopy, ABORTED, FINISHED, Duty::End),
    (ANSWERING_INSIDE, LeaveCopy, NOT_ABORTED, ANSWERING, Duty::Nothing),
    (ANSWERING_INSIDE, Signal, FIRST_SIGNAL, ANSWERING_INSIDE, Duty::Nothing),
    (ANSWERING_INSIDE, Abort, NOT_ABORTED, ANSWERING_INSIDE, Duty::Nothing),
];

/// The marks that an event of the table sets.
fn marked(before: &RequestState, event: Event, duty: Duty) -> RequestState {
    let mut after = *before;
    match event {
        Signal => after.interrupted = true,
        Abort if before.inside => after.aborted = true,
        TakeInterrupt => after.interrupt_queued = false,
        _ => {}
    }
    if duty == Duty::QueueInterrupt {
        after.interrupt_queued = true;
    }
    after
}

#[test]
fn code_follows_table() {
    let mut used = HashSet::new();
    for before in reachable() {
        for event in EVENTS {
            let mut after = before;
            let result = apply(&mut after, event);
            let at = format!("{event:?} in {before:?}");

            let mut rows = TABLE
                .iter()
                .enumerate()
                .filter(|(_, row)| row.0 == place(&before) && row.1 == event && row.2 .1(&before));
            let row = rows.next();
            assert!(rows.next().is_none(), "two rows for {at}");
            let (expected, mut state) = match row {
                Some((number, &(_, _, _, (phase, inside), duty))) => {
                    used.insert(number);
                    let state = RequestState {
                        phase,
                        inside,
                        ..marked(&before, event, duty)
                    };
                    (Ok(duty), state)
                }
                None => {
                    let refused = match before.phase {
                        Phase::Finished if event != LeaveCopy => Refused::Ended,
                        _ => Refused::WrongPhase,
                    };
                    let expected = match event {
                        Signal | FatalSignal | InterruptAgain | Resend | Abort => Ok(Duty::Nothing),
                        _ => Err(refused),
                    };
                    (expected, before)
                }
            };
            if event == TakeInterrupt {
                state.interrupt_queued = false;
            }
            assert_eq!(result, expected, "{at}");
            assert_eq!(after, state, "{at}");
        }
    }
    assert_eq!(used.len(), TABLE.len(), "a row that no state comes to");
}

#[test]
fn states_are_sound() {
    for before in reachable() {
        assert!(!before.inside || matches!(before.phase, Phase::Reading | Phase::Answering));
        assert!(!before.interrupt_queued || before.interrupted);
        for event in EVENTS {
            let mut after = before;
            let result = apply(&mut after, event);
            let at = format!("{event:?} in {before:?}");

            let ends = after.is_finished() && !before.is_finished();
            assert_eq!(result == Ok(Duty::End), ends, "{at}");
            assert!(!before.is_finished() || after.is_finished(), "{at}");
            assert!(!(ends && before.inside) || event == LeaveCopy, "{at}");
            if result == Ok(Duty::QueueInterrupt) {
                assert!(
                    after.phase == Phase::Sent && !before.interrupt_queued,
                    "{at}"
                );
            }
        }
        // Whatever happened, an abort and the copier's leaving end it.
        let mut state = before;
        let ends = [Abort, LeaveCopy].map(|event| apply(&mut state, event) == Ok(Duty::End));
        assert!(state.is_finished());
        assert_eq!(ends.contains(&true), !before.is_finished());
    }
}

#[test]
fn docs_have_the_table() {
    let mut table = String::from(
        "| phase | event | if | sets | then | the caller must |\n|---|---|---|---|---|---|\n",
    );
    for &(before, event, (when, _), after, duty) in TABLE {
        let mark = match event {
            Signal => "`interrupted`",
            Abort if before.1 => "`aborted`",
            _ => "",
        };
        table += &format!(
            "| {} | `{}` | {when} | {mark} | {} | {} |\n",
            place_name(before),
            event.name(),
            place_name(after),
            duty.text()
        );
    }
    let docs = include_str!("../../../../docs/request-states.md");
    assert!(docs.contains(&table), "the table should be\n{table}");
}

#[test]
fn unique_ids() {
    assert_eq!([unique(0), unique(1), unique(2)], [2, 4, 6]);
    for n in [
        0,
        1,
        UNIQUE_COUNT - 1,
        UNIQUE_COUNT,
        UNIQUE_COUNT + 1,
        u64::MAX - 1,
        u64::MAX,
    ] {
        assert_ne!(unique(n), 0);
        assert_eq!(
            unique(n) & (fuse_abi::UNIQUE_INTERRUPT | fuse_abi::UNIQUE_RESEND),
            0
        );
        assert_ne!(unique(n), unique(n.wrapping_add(1)));
    }
}

//! The requests of a run, each with all questions that it led to.

use std::collections::HashMap;

use crate::folder::Folder;
use crate::row::{Direction, Message, MessageKind, Role};

/// A question and its answer, at both ends. Times are ns of the machine's one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub request: u64,
    pub kind: MessageKind,
    /// Index of the answering process in [`Folder::processes`].
    pub host: usize,
    /// Time before the question was sent.
    pub asked_ns: u64,
    /// Time after the question was received.
    pub received_ns: u64,
    /// Time before the answer was sent.
    pub answered_ns: u64,
    /// Time after the answer was received.
    pub gathered_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    pub query: Question,
    /// The front end's questions, one to each back end.
    pub searches: Vec<Question>,
    /// The front end's questions to owners of hits.
    pub snippets: Vec<Question>,
}

/// A request whose rows are incomplete or contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("request {request:x}: {why}")]
pub struct TreeFault {
    pub request: u64,
    pub why: String,
}

/// Rows of a question that are known so far.
#[derive(Debug, Default)]
struct Rows {
    parent: u64,
    kind: Option<MessageKind>,
    host: usize,
    asked: Option<u64>,
    received: Option<u64>,
    answered: Option<u64>,
    gathered: Option<u64>,
}

impl Rows {
    fn add(&mut self, at: usize, message: &Message) -> Result<(), &'static str> {
        let (is_question, is_sent) =
            (message.kind.is_question(), message.direction == Direction::Sent);
        if self.kind.is_some() && self.parent != message.parent {
            return Err("its messages disagree on whose part it is");
        }
        self.parent = message.parent;
        if is_question != is_sent {
            self.host = at;
        }
        let expected = match message.kind {
            MessageKind::Query | MessageKind::Answer => MessageKind::Query,
            MessageKind::Search | MessageKind::Found => MessageKind::Search,
            MessageKind::Snippets | MessageKind::Texts => MessageKind::Snippets,
        };
        if *self.kind.get_or_insert(expected) != expected {
            return Err("its answer is to another kind of question");
        }
        let place = match (is_question, is_sent) {
            (true, true) => &mut self.asked,
            (true, false) => &mut self.received,
            (false, true) => &mut self.answered,
            (false, false) => &mut self.gathered,
        };
        match place.replace(message.at_ns) {
            None => Ok(()),
            Some(_) => Err("one of its messages is there twice"),
        }
    }

    fn question(&self, request: u64) -> Option<Question> {
        Some(Question {
            request,
            kind: self.kind?,
            host: self.host,
            asked_ns: self.asked?,
            received_ns: self.received?,
            answered_ns: self.answered?,
            gathered_ns: self.gathered?,
        })
    }
}

/// Puts together all requests of all clients, sorted by the time at which they were asked.
///
/// # Errors
/// The first one that is not whole: a message is missing or there twice, a back end was not asked, or times are out of
/// order.
pub fn trees(folder: &Folder) -> Result<Vec<Tree>, TreeFault> {
    let mut rows: HashMap<u64, Rows> = HashMap::new();
    for (at, process) in folder.processes.iter().enumerate() {
        for message in process.messages() {
            let fault = |why: &str| fault(message.request, why.to_owned());
            let rows = rows.entry(message.request).or_default();
            rows.add(at, message).map_err(fault)?;
        }
    }
    let mut roots = HashMap::new();
    let mut parts: Vec<(u64, Question)> = Vec::new();
    for (request, rows) in rows {
        let question = rows.question(request);
        let question = question.ok_or_else(|| fault(request, "a message is missing".into()))?;
        if rows.parent == 0 {
            let tree = Tree { query: question, searches: Vec::new(), snippets: Vec::new() };
            roots.insert(request, tree);
        } else {
            parts.push((rows.parent, question));
        }
    }
    for (parent, question) in parts {
        let request = question.request;
        let tree = roots.get_mut(&parent);
        let tree = tree.ok_or_else(|| fault(request, format!("there is no request {parent:x}")))?;
        match question.kind {
            MessageKind::Search => tree.searches.push(question),
            MessageKind::Snippets => tree.snippets.push(question),
            _ => return Err(fault(request, "a part of a request is no query".into())),
        }
    }
    let back_ends = folder.of(Role::BackEnd).count();
    let mut trees: Vec<Tree> = roots.into_values().collect();
    trees.sort_by_key(|tree| tree.query.asked_ns);
    for tree in &mut trees {
        tree.searches.sort_by_key(|question| question.host);
        tree.snippets.sort_by_key(|question| question.host);
        check(tree, back_ends).map_err(|why| fault(tree.query.request, why))?;
    }
    Ok(trees)
}

fn fault(request: u64, why: String) -> TreeFault {
    TreeFault { request, why }
}

fn check(tree: &Tree, back_ends: usize) -> Result<(), String> {
    let mut searched: Vec<usize> = tree.searches.iter().map(|search| search.host).collect();
    searched.dedup();
    if searched.len() != back_ends || tree.searches.len() != back_ends {
        return Err(format!(
            "{} searches at {} of {back_ends} back ends",
            tree.searches.len(),
            searched.len()
        ));
    }
    let questions = || tree.searches.iter().chain(&tree.snippets);
    for question in questions().chain([&tree.query]) {
        let times =
            [question.asked_ns, question.received_ns, question.answered_ns, question.gathered_ns];
        if !times.is_sorted() {
            return Err(format!("times of {:x} are out of order", question.request));
        }
    }
    let is_inside = |question: &Question| {
        tree.query.received_ns <= question.asked_ns
            && question.gathered_ns <= tree.query.answered_ns
    };
    if !questions().all(is_inside) {
        return Err("a part is not inside its request".into());
    }
    let gathered = tree.searches.iter().map(|search| search.gathered_ns).max();
    let asked = tree.snippets.iter().map(|snippet| snippet.asked_ns).min();
    if asked.is_some_and(|asked| gathered > Some(asked)) {
        return Err("snippets were asked before all was gathered".into());
    }
    Ok(())
}

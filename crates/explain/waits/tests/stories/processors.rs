//! Processors: who had the one that a thread was ready for.

use luc_events::WaitCause;
use luc_waits::TimeSpan;

use crate::story::{MS, Story, roots};

#[test]
fn a_processor_is_awaited_from_the_thread_that_has_it() {
    let mut story = Story::new();
    let app = story.thread("app", "app");
    let hog = story.thread("hog", "hog");
    story.wait_for(0, hog, WaitCause::Sleep, [0, 10, 10]);
    story.wait_for(0, hog, WaitCause::Sleep, [95, 200, 200]);
    story.wait_for(0, app, WaitCause::Sleep, [5, 20, 100]);
    let graph = story.graph();
    assert_eq!(roots(&graph, app, 20, 100), ["75 processor hog hog", "5 no_processor app app"]);
    let found = graph.roots_of(app, TimeSpan::new(20 * MS, 100 * MS));
    assert_eq!((found.parts[0].thread, found.parts[0].other), (Some(hog), Some(app)));
}

//! Traces that are read host by host.

use luc_events::store::TraceReader;
use luc_events::tables::{ConnectionMessage, OffCpuWait, TcpPacket};
use luc_fleet::{ExplanationOptions, JoinedTraces, TablesToRead, TraceArgument, explain, read};
use luc_testkit::fleet::PlantedFleet;

#[test]
fn traces_say_the_same_read_at_once_and_host_by_host() {
    for requests in [500, 501, 502, 509] {
        let folder = tempfile::tempdir().expect("made");
        let fleet = PlantedFleet { back_ends: 3, requests, waits: 7 };
        let traces = fleet.write(folder.path()).expect("written");
        let source = |directory: &std::path::PathBuf| TraceArgument {
            name: None,
            directory: directory.clone(),
        };
        let sources: Vec<TraceArgument> = traces.iter().map(source).collect();
        let at_once =
            JoinedTraces::new(read(&sources, TablesToRead::All).expect("read")).expect("joined");
        let by_host = JoinedTraces::read(&sources, TablesToRead::All, None).expect("joined");
        let wanted = ExplanationOptions { request: None, rows: true };
        let [at_once, by_host] =
            [at_once, by_host].map(|joined| explain(&joined, wanted).expect("explained"));
        assert_eq!(at_once, by_host);
        assert_eq!(by_host.requests.incoming, 3 * requests);
        let waits = by_host.rows.map_or(0, |rows| rows.waits.len());
        assert!(waits as u64 > 3 * requests, "{waits}");
        let rows = traces.iter().map(|trace| {
            let reader = TraceReader::open(trace).expect("opened");
            let messages = reader.rows::<ConnectionMessage>().expect("read").rows_in_all();
            let packets = reader.rows::<TcpPacket>().expect("read").rows_in_all();
            let waits = reader.rows::<OffCpuWait>().expect("read").rows_in_all();
            messages + packets + waits
        });
        assert_eq!(rows.sum::<u64>(), fleet.rows(), "{requests}");
    }
}

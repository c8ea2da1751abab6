"""A server that refuses every write for some seconds has not lost anything: all goes on once it writes again."""

from everytick.domain.ids import job_id
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records
from tests.acceptance.node.stoppable import StoppableServer


def test_ends_on_a_read_only_server_are_recorded_once_it_writes_again(server: StoppableServer, fleet: Fleet) -> None:
    """V3: read only (25006) counts as an outage: no end is dropped, and no job is put aside."""
    nodes = [fleet.start("writing", server.address) for _ in range(2)]
    for node in nodes:
        fleet.hear("ran quick", by=node)
    began = fleet.hear("began ").split()[1]
    server.set_read_only(True)
    fleet.hear("store_lost")
    fleet.hear(f"ended {began}")
    # A node that took this for a fault of the end would try it a few times, and drop it.
    fleet.hear_for(3)

    server.set_read_only(False)
    fleet.hear("ran quick")
    last = fleet.hear("began ").split()[1]
    fleet.hear(f"ended {last}")
    for _ in range(3):
        fleet.hear("ran quick")
    for node in nodes:
        node.tell_to_stop()
    for node in nodes:
        assert node.ended() == 0
        assert "Traceback" not in node.complaints()

    ended = {int(line.split()[1]) for line in fleet.heard() if line.startswith("ended ")}
    kept = {
        int(whole.occurrence.scheduled_for.timestamp()): str(whole.occurrence.status)
        for whole in all_records(server.address)
        if whole.occurrence.job_id == job_id("longer")
    }
    assert {kept[at] for at in ended} == {"completed"}
    ran = [line for line in fleet.heard() if line.startswith("ran quick")]
    assert len(ran) == len(set(ran))

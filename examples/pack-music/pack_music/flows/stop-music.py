"""Stop the music."""

descriptor = {
    "contract": 1,
    "name": "stop-music",
    "displayName": "Stop the music",
    "description": "Stops what is playing.",
    "kind": "task",
    "pack": "music",
    "patterns": ["(stop | end) (playing)? (the | my)? music"],
    "examples": [{"sentence": "stop the music", "params": {}}],
    "policy": {},
}


def run(input, options):
    yield {"output": {"role": "player", "content": "silence", "meta": {}}}
    return {"success": True, "message": "the music has stopped", "data": None, "activity": None}

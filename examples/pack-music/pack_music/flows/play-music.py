"""Play a piece of music."""

descriptor = {
    "contract": 1,
    "name": "play-music",
    "displayName": "Play music",
    "description": "Plays a song, an album or a kind of music.",
    "kind": "task",
    "pack": "music",
    "parameters": {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "A song, an album or a genre."},
            "artist": {"type": "string", "description": "Who plays it."},
        },
        "required": ["title"],
    },
    "patterns": [
        "play $(title)",
        "play $(title) by $(artist)",
    ],
    "examples": [
        {
            "sentence": "play Blue Train by John Coltrane",
            "params": {"title": "Blue Train", "artist": "John Coltrane"},
        }
    ],
    "policy": {},
}


def run(input, options):
    params = input["params"]
    by = f" by {params['artist']}" if params.get("artist") else ""
    yield {"output": {"role": "player", "content": f"{params['title']}{by}", "meta": {}}}
    return {
        "success": True,
        "message": f"playing {params['title']}{by}",
        "data": params,
        "entities": [{"name": params["title"], "type": "music", "value": params}],
        "activity": {"name": "music", "packs": ["music"], "exclusive": False},
    }

#!/usr/bin/env python3
"""The picture of the house, docs/images/house.svg, from the #include lines of src/:  make_house.py [--check]

A box is a room, an arrow says that a file of the one includes a header of the other. Arrows that follow from others (through a room in
between) are left out. --check fails if the picture that is there is not the one that the sources give.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/images/house.svg"
WIDTH, BOX, HEIGHT, GAP = 920, 104, 34, 74


def layers():
    """Rooms by layer, lowest first, as scripts/check_layers.sh has them."""
    text = (ROOT / "scripts/check_layers.sh").read_text()
    found = re.findall(r'rank\("([a-z ]+)", (\d+)\)', text)
    return [rooms.split() for rooms, _ in sorted(found, key=lambda pair: int(pair[1]))]


def includes(rooms):
    """room -> rooms whose headers its files include."""
    edges = {room: set() for room in rooms}
    for room in rooms:
        for path in sorted((ROOT / "src" / room).rglob("*.[ch]")):
            named = re.findall(r'^#include "([a-z]+)/', path.read_text(), re.M)
            edges[room] |= {name for name in named if name in edges and name != room}
    return edges


def reachable(edges, start):
    found, open_ends = set(), list(edges[start])
    while open_ends:
        room = open_ends.pop()
        if room not in found:
            found.add(room)
            open_ends += edges[room]
    return found


def needed(edges):
    """Arrows that do not follow from two others."""
    for room, direct in sorted(edges.items()):
        for other in sorted(direct):
            if not any(other in reachable(edges, between) for between in direct - {other}):
                yield room, other


def places(rows):
    """room -> middle of its box."""
    spots = {}
    for level, rooms in enumerate(reversed(rows)):
        step = WIDTH / (len(rooms) + 1)
        for number, room in enumerate(rooms):
            spots[room] = (round(step * (number + 1)) + (level % 3 - 1) * 30, 40 + GAP * level)  # so that arrows miss boxes
    return spots


def draw():
    rows = [[room for room in row if (ROOT / "src" / room).is_dir()] for row in layers()]
    spots = places(rows)
    high = 40 + GAP * len(rows) - 20
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" font-family="sans-serif" font-size="14">',
             "<title>The rooms of src/ and which includes which</title>",
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
             '<path d="M0 0 8 4 0 8z" fill="#607080"/></marker></defs>',
             f'<rect width="{WIDTH}" height="{high}" fill="#ffffff"/>']
    for room, other in needed(includes(list(spots))):
        (x1, y1), (x2, y2) = spots[room], spots[other]
        lines.append(f'<path d="M{x1} {y1 + HEIGHT // 2} L{x2} {y2 - HEIGHT // 2}" stroke="#607080" stroke-opacity=".7" '
                     'fill="none" marker-end="url(#tip)"/>')
    for room, (x, y) in sorted(spots.items()):
        lines.append(f'<rect x="{x - BOX // 2}" y="{y - HEIGHT // 2}" width="{BOX}" height="{HEIGHT}" rx="6" fill="#e8f1f8" '
                     'stroke="#2f6f9f"/>')
        lines.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="#102030">{room}</text>')
    return "\n".join(lines + ["</svg>", ""])


def main():
    picture = draw()
    if "--check" in sys.argv[1:]:
        if not PICTURE.exists() or PICTURE.read_text() != picture:
            sys.exit("docs/images/house.svg is not what the sources give; run scripts/make_house.py")
    else:
        PICTURE.write_text(picture)


if __name__ == "__main__":
    main()

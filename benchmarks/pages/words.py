"""Words of which the pages' data are made."""

from __future__ import annotations

__all__ = [
    "CITIES",
    "COLOURS",
    "GOODS",
    "MONTHS",
    "PEOPLE",
    "PLACES",
    "REMARKS",
    "SUBJECTS",
    "TAGS",
]

PEOPLE = (
    *(
        "Ada Lindqvist",
        "Bruno Keller",
        "Carla Moretti",
        "Dmitri Novak",
        "Elif Kaya",
        "Femke Visser",
    ),
    *("Gustav Brandt", "Hana Suzuki", "Ivo Horvat", "Jana Svoboda", "Karim Haddad", "Lena Fischer"),
    *(
        "Mateo Rojas",
        "Nadia Petrova",
        "Oskar Berg",
        "Priya Nair",
        "Quentin Moreau",
        "Rosa Iglesias",
    ),
    *("Samir Aziz", "Tove Dahl", "Umberto Greco", "Vera Kovacs", "Wanda Nowak", "Yusuf Demir"),
)
GOODS = (
    *("Blue Lamp", "Red Chair", "Oak Table", "Wool Carpet", "Steel Kettle", "Linen Curtain"),
    *("Glass Vase", "Cork Board", "Copper Pan", "Paper Lantern", "Velvet Sofa", "Bamboo Shelf"),
    *("Marble Tray", "Clay Pot", "Cotton Towel", "Walnut Desk", "Silver Clock", "Rattan Basket"),
    *("Leather Stool", "Ceramic Bowl", "Iron Hook", "Pine Bench", "Brass Mirror", "Felt Cushion"),
)
SUBJECTS = (
    *("Budget for spring", "Travel to Oslo", "Roof repair", "Board meeting", "New printer"),
    *("Garden party", "Annual review", "Library hours", "Train tickets", "Kitchen plan"),
    *("Translation draft", "Insurance claim", "Photo archive", "Bike storage", "Summer course"),
    *("Lost umbrella", "Team lunch", "Choir practice", "Heating bill", "Museum visit"),
)
CITIES = (
    *(
        "Bern",
        "Basel",
        "Lisbon",
        "Porto",
        "Turku",
        "Tampere",
        "Ghent",
        "Bruges",
        "Krakow",
        "Gdansk",
    ),
    *("Malmo", "Uppsala", "Bergen", "Tromso", "Lyon", "Nantes", "Graz", "Linz", "Split", "Zadar"),
)
PLACES = (
    *("Harbour Hall", "Castle Inn", "Lake House", "Forest Lodge", "Mill Cottage", "Tower Rooms"),
    *("Garden Hotel", "Station Hostel", "Bridge Flat", "Hill Cabin", "River Barn", "Chapel Loft"),
)
TAGS = (
    *("urgent", "private", "garden", "finance", "reading", "school", "family", "ideas", "health"),
    *("music", "sports", "cooking", "museum", "winter", "holiday", "repairs"),
)
COLOURS = ("Crimson", "Teal", "Amber", "Indigo", "Olive", "Coral", "Slate", "Ivory")
REMARKS = (
    *("Please ring twice", "Leave it at the door", "Call before noon", "Use the side entrance"),
    *("Handle with care", "No sugar please", "Keep it short", "Ask for the manager"),
    *("Deliver after lunch", "Second floor on the left", "Bring the blue folder", "It can wait"),
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

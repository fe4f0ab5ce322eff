"""A text that no proxy lets pass, of characters of every width."""

LARGE = "".join(f"{number:05} größer 漢字 🙂 {number * 7919 % 9973}\n" for number in range(6_000))

"""What a preset chooses besides values."""

from overspill.settings import PRESETS, Settings
from overspill.wording.presets import DOCUMENT, OVERSPILL, WORDINGS


def test_every_preset_chooses_a_wording_and_all_but_the_default_that_of_the_documents():
    assert set(WORDINGS) == set(PRESETS)
    assert {preset: Settings(preset=preset).wording for preset in PRESETS} == dict.fromkeys(PRESETS, DOCUMENT) | {
        "overspill": OVERSPILL
    }

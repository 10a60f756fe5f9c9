"""Montage: a mosaic of the sky from many images (astronomy).

Nine levels: every image is reprojected (mProjectPP), every pair of overlapping images is compared
(mDiffFit), one model of the background is fitted (mConcatFit, mBgModel), every image is corrected
(mBackground), and the mosaic is put together (mImgTbl, mAdd, mShrink, mJPEG).

Means and deviations of run times and sizes are those that the Pegasus workflow generator uses; its
published workflows agree with them (docs/reference/recipes.md).

Deviation: the Pegasus generator also compares images with themselves and some pairs twice (1 to 6
of its comparisons have a single parent). Here every comparison is of two different images, no pair
comes twice, and the overlaps connect all images wherever there are comparisons enough.
"""

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.recipes.chance import Chance, around, one_around
from windrow.recipes.draft import RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks

_SINGLE_TASKS = 6
_IMAGES_PER_SQUARE_DEGREE = 50


def build_montage(rng: Chance, tasks: int, *, overlaps: float) -> Workflow:
    """A Montage of exactly `tasks` tasks."""
    require_tasks("montage", tasks, 15)
    require(overlaps > 0, "montage", f"overlaps must be above 0, not {overlaps}")
    images = _images(tasks - _SINGLE_TASKS, overlaps)
    pairs = _overlapping(rng, images, tasks - _SINGLE_TASKS - 2 * images)
    draft = RecipeDraft(f"montage-{tasks}")
    reproject = draft.add("mProjectPP", around(rng, 13.59, 0.245, images))
    draft.files("region.hdr", 304, read_by=reproject)
    draft.files(numbered("2mass-atlas-{}.fits", images), 4_222_080, read_by=reproject)
    projected = _image_and_area(draft, rng, "p2mass-atlas", reproject)
    corrections = _fit_background(draft, rng, projected, pairs)
    correct = draft.add("mBackground", around(rng, 10.74, 0.173, images))
    draft.reads(correct, corrections)
    draft.reads(correct[:, np.newaxis], projected)
    _assemble(draft, rng, _image_and_area(draft, rng, "c2mass-atlas", correct), images)
    return draft.workflow()


def _images(remaining: int, overlaps: float) -> int:
    """How many images, so that 2 tasks per image and about `overlaps` comparisons per image make
    `remaining`."""
    images = max(2, min(round(remaining / (overlaps + 2)), (remaining - 1) // 2))
    while images * (images - 1) // 2 < remaining - 2 * images:
        images += 1
    return images


def _overlapping(rng: Chance, images: int, count: int) -> Ints:
    """`count` different pairs of different images, one row each: first a path through all images,
    then any others."""
    path = rng.permutation(images)
    code = _codes(path[:-1], path[1:], images)[:count]
    while len(code) < count:
        left, right = rng.integers(0, images, (2, 2 * count))
        more = _codes(left[left != right], right[left != right], images)
        _, first = np.unique(np.concatenate([code, more]), return_index=True)
        code = np.concatenate([code, more])[np.sort(first)][:count]
    code = np.sort(code)
    return np.stack([code // images, code % images], axis=1)


def _codes(left: Ints, right: Ints, images: int) -> Ints:
    return np.minimum(left, right) * images + np.maximum(left, right)


def _fit_background(draft: RecipeDraft, rng: Chance, projected: Ints, pairs: Ints) -> Ints:
    """mDiffFit for every pair, then mConcatFit and mBgModel. Returns the file of corrections."""
    images = len(projected)
    count = len(pairs)
    compare = draft.add("mDiffFit", around(rng, 10.59, 0.1, count))
    for side in pairs.T:
        draft.reads(compare[:, np.newaxis], projected[side])
    fits = draft.files(
        numbered("fit_{}.txt", count), around(rng, 273.74, 9.95, count), written_by=compare
    )
    sizes = around(rng, 284_097, 147_591, count)
    differences = draft.files(numbered("diff_{}.fits", count), sizes, written_by=compare)

    concat = draft.add("mConcatFit", 0.08 * count)
    draft.files("fits_list.tbl", 27.26 * count, read_by=concat)
    draft.reads(concat, fits)
    draft.reads(concat, differences)

    model = draft.add("mBgModel", one_around(rng, 0.13, 0.1) * count)
    draft.files("fits.tbl", 209.95 * count, written_by=concat, read_by=model)
    draft.files("pimages.tbl", 167.56 * images, read_by=model)
    return draft.files("corrections.tbl", 53.18 * images, written_by=model)


def _image_and_area(draft: RecipeDraft, rng: Chance, stem: str, tasks: Ints) -> Ints:
    """What these tasks write: for each image, its file and its area file."""
    sizes = around(rng, 4_162_432, 10_666, len(tasks))
    names = (numbered(f"{stem}-{{}}{what}.fits", len(tasks)) for what in ("", "_area"))
    return np.stack([draft.files(each, sizes, written_by=tasks) for each in names], axis=1)


def _assemble(draft: RecipeDraft, rng: Chance, corrected: Ints, images: int) -> None:
    """mImgTbl, mAdd, mShrink, mJPEG: the mosaic, smaller, as a picture."""
    degrees = np.sqrt(images / _IMAGES_PER_SQUARE_DEGREE)
    table = draft.add("mImgTbl", one_around(rng, 0.37, 0.1) * images)
    draft.reads(table, corrected)
    draft.files("cimages.tbl", 167.56 * images, read_by=table)
    index_bytes = one_around(rng, 352.24, 48.1) * images
    add = draft.add("mAdd", one_around(rng, 30.11, 0.224) * degrees**2)
    draft.files("newcimages.tbl", index_bytes, written_by=table, read_by=add)
    mosaic_bytes = 173_465_280 * degrees * rng.uniform(0.7, 1.1)
    shrink = draft.add("mShrink", 12.21 * degrees)
    draft.files(["mosaic.fits", "mosaic_area.fits"], mosaic_bytes, written_by=add, read_by=shrink)
    picture_bytes = mosaic_bytes / 24.99 / 4 * rng.uniform(0.25, 1.25)
    draw = draft.add("mJPEG", picture_bytes / one_around(rng, 549_291, 62_719))
    draft.files("shrunken.fits", mosaic_bytes / 24.99, written_by=shrink, read_by=draw)
    draft.files("shrunken.jpg", picture_bytes, written_by=draw)

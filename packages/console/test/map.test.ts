import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import KDBush from 'kdbush';
import {
  type Camera,
  cameraBetween,
  closeCamera,
  fitCamera,
  pan,
  toPlane,
  toScreen,
  zoom,
} from '../src/views/map/camera.js';
import {
  colourColumn,
  MISSING_ENTRY,
  OTHER_ENTRY,
  SCALE_START,
} from '../src/views/map/column-colours.js';
import { meanOf } from '../src/views/map/mean.js';
import { entryColour, paletteOf } from '../src/views/map/palette.js';
import { HIDDEN, pointFlags } from '../src/views/map/point-flags.js';
import {
  changeSelection,
  nearestPoint,
  type PointIndex,
  pointsWithin,
} from '../src/views/map/point-selection.js';

const SIZE = { width: 400, height: 200 };

function assertNear(found: number, expected: number, what?: string) {
  assert.ok(
    Math.abs(found - expected) < 1e-9,
    `${what ?? ''} expected ${expected}, found ${found}`,
  );
}

describe('the camera', () => {
  test('shows all points with a margin', () => {
    const positions = Float32Array.of(-10, 5, 30, 7, 0, -3);
    const camera = fitCamera(positions, SIZE);
    for (let at = 0; at < positions.length; at += 2) {
      const point = { x: positions[at]!, y: positions[at + 1]! };
      const { x, y } = toScreen(camera, SIZE, point);
      assert.ok(x > 0 && x < SIZE.width && y > 0 && y < SIZE.height, `${x}, ${y}`);
    }
  });

  test('is hardly affected by a few outliers', () => {
    const near = Array.from({ length: 1_000 }, (_, i) => [i % 10, Math.floor(i / 100)]).flat();
    const alone = fitCamera(Float32Array.from(near), SIZE);
    const { scale } = fitCamera(Float32Array.from([...near, 500, 500]), SIZE);
    assert.ok(scale > 0.7 * alone.scale, `${scale} instead of ${alone.scale}`);
  });

  test('is finite for no points, one point and equal points', () => {
    for (const positions of [[], [3, 4], [3, 4, 3, 4]]) {
      const { x, y, scale } = fitCamera(Float32Array.from(positions), SIZE);
      assert.ok([x, y, scale].every(Number.isFinite) && scale > 0);
    }
  });

  test('converts between screen and plane', () => {
    const camera: Camera = { x: 3, y: -2, scale: 12 };
    const point = toPlane(camera, SIZE, toScreen(camera, SIZE, { x: 1.5, y: 7 }));
    assertNear(point.x, 1.5);
    assertNear(point.y, 7);
    assert.ok(toScreen(camera, SIZE, { x: 0, y: 1 }).y < toScreen(camera, SIZE, { x: 0, y: 0 }).y);
  });

  test('moves with the pointer, and zooms around it', () => {
    const camera: Camera = { x: 1, y: 1, scale: 10 };
    const moved = toScreen(pan(camera, 30, -20), SIZE, { x: 1, y: 1 });
    assertNear(moved.x, 230);
    assertNear(moved.y, 80);
    const around = { x: 350, y: 20 };
    const zoomed = zoom(camera, SIZE, 3, around);
    const still = toScreen(zoomed, SIZE, toPlane(camera, SIZE, around));
    assertNear(still.x, 350);
    assertNear(still.y, 20);
    assert.equal(zoomed.scale, 30);
  });
});

describe('a flight', () => {
  const fitted: Camera = { x: 0, y: 0, scale: 10 };

  test('ends close to the point, and never zooms out', () => {
    const view = { camera: fitted, fitted, pointCount: 40_000 };
    assert.deepEqual(closeCamera({ x: 3, y: 4 }, view), { x: 3, y: 4, scale: 100 });
    const near = { ...view, camera: { ...fitted, scale: 900 } };
    assert.equal(closeCamera({ x: 3, y: 4 }, near).scale, 900);
  });

  test('goes from one view to the other', () => {
    const end: Camera = { x: 8, y: -2, scale: 1_000 };
    assert.deepEqual(cameraBetween(fitted, end, 0), fitted);
    const { x, y, scale } = cameraBetween(fitted, end, 1);
    assert.deepEqual([x, y], [8, -2]);
    assertNear(scale / 1_000, 1);
    assertNear(cameraBetween(fitted, end, 0.5).scale, 100);
  });
});

describe('the colours of a column', () => {
  test('strings are categories; the ten most frequent get colours, ordered by name', () => {
    const values = Array.from({ length: 12 }, (_, i) => Array(12 - i).fill(`name ${i}`)).flat();
    const colours = colourColumn([...values, null, undefined]);
    assert.ok(colours.kind === 'categories');
    assert.deepEqual(
      colours.legend.map(({ label, count }) => `${label}: ${count}`),
      [...Array.from({ length: 10 }, (_, i) => `name ${i}: ${12 - i}`), '2 others: 3', 'None: 2'],
    );
    assert.equal(colours.entries[0], 0);
    assert.equal(colours.entries[values.length - 1], OTHER_ENTRY);
    assert.equal(colours.entries.at(-1), MISSING_ENTRY);
  });

  test('few distinct numbers are categories in numeric order, and so are booleans', () => {
    const labels = colourColumn([10, 2, 2, 10, 10]);
    assert.ok(labels.kind === 'categories');
    assert.deepEqual(
      labels.legend.map(({ label }) => label),
      ['2', '10'],
    );
    assert.equal(colourColumn([true, false]).kind, 'categories');
  });

  test('many numbers form a scale that outliers do not stretch', () => {
    const values = [...Array.from({ length: 300 }, (_, i) => i), 1e9, undefined];
    const colours = colourColumn(values);
    assert.ok(colours.kind === 'scale');
    assert.ok(colours.max < 300, `found ${colours.max}`);
    assert.equal(colours.entries[0], SCALE_START);
    assert.equal(colours.entries[300], 255, 'beyond the scale, the colour of its end');
    assert.equal(colours.entries[301], MISSING_ENTRY);
    assert.equal(colours.missingCount, 1);
    assert.ok(colours.entries[100]! < colours.entries[200]!);
  });

  test('integers beyond 2^53 are part of a scale, or categories with all digits', () => {
    const [one, other] = [1768907725507217522n, 1768907725507217523n];
    const few = colourColumn([one, other, other, 1]);
    assert.ok(few.kind === 'categories');
    assert.deepEqual(
      few.legend.map(({ label, count }) => `${label}: ${count}`),
      ['1: 1', `${one}: 1`, `${other}: 2`],
    );
    const many = colourColumn(
      Array.from({ length: 40 }, (_, i) => (i < 20 ? i : 2n ** 60n + BigInt(i))),
    );
    assert.ok(many.kind === 'scale');
    assert.equal(many.entries[0], SCALE_START);
    assert.equal(many.entries[39], 255);
  });

  test('numbers mixed with strings are categories', () => {
    const mixed = [...Array.from({ length: 20 }, (_, i) => i), 'x'];
    assert.equal(colourColumn(mixed).kind, 'categories');
  });
});

/** The relative luminance of WCAG 2.2. */
function luminanceOf(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

describe('the palette', () => {
  const surfaces = { light: '#ffffff', dark: '#151b23' } as const;
  for (const theme of ['light', 'dark'] as const) {
    test(`every colour of the ${theme} theme has a contrast of at least 3 with the surface`, () => {
      const surface = luminanceOf(surfaces[theme]);
      for (let entry = 0; entry < 256; entry++) {
        const [low, high] = [surface, luminanceOf(entryColour(theme, entry))].sort((a, b) => a - b);
        const contrast = (high! + 0.05) / (low! + 0.05);
        assert.ok(contrast >= 3, `entry ${entry}: ${contrast}`);
      }
    });

    test(`the scale of the ${theme} theme gets steadily lighter or darker`, () => {
      const sign = theme === 'light' ? -1 : 1;
      for (let entry = SCALE_START + 8; entry < 256; entry++) {
        const before = luminanceOf(entryColour(theme, entry - 8));
        assert.ok(sign * (luminanceOf(entryColour(theme, entry)) - before) > 0, `entry ${entry}`);
      }
    });
  }

  test('the renderer gets the same colours', () => {
    const palette = paletteOf('dark');
    const [red, green, blue, alpha] = palette.subarray(4 * 7, 4 * 8);
    const hex = [red, green, blue].map((part) => part!.toString(16).padStart(2, '0')).join('');
    assert.equal(`#${hex}`, entryColour('dark', 7));
    assert.equal(alpha, 255);
  });
});

function indexOf(positions: Float32Array): PointIndex {
  const tree = new KDBush(positions.length / 2, 64, Float32Array);
  for (let at = 0; at < positions.length; at += 2) tree.add(positions[at]!, positions[at + 1]!);
  return { positions, tree: tree.finish() };
}

describe('points', () => {
  // A grid of 5 × 5: point 7 is at (2, 1).
  const grid = Float32Array.from(
    Array.from({ length: 25 }, (_, i) => [i % 5, Math.floor(i / 5)]).flat(),
  );
  const index = indexOf(grid);

  test('a lasso selects the points inside, even if it is concave', () => {
    const line = [
      { x: -0.5, y: -0.5 },
      { x: 4.5, y: -0.5 },
      { x: 4.5, y: 1.5 },
      { x: 2, y: -0.2 },
      { x: -0.5, y: 1.5 },
    ];
    assert.deepEqual(
      pointsWithin(index, line).sort((a, b) => a - b),
      [0, 1, 3, 4, 5, 9],
    );
  });

  test('the nearest shown point within a radius is found', () => {
    const position = { x: 2.2, y: 1.1 };
    assert.equal(
      nearestPoint(index, position, 0.5, () => true),
      7,
    );
    assert.equal(
      nearestPoint(index, position, 0.9, (point) => point !== 7),
      8,
    );
    assert.equal(
      nearestPoint(index, { x: 9, y: 9 }, 0.5, () => true),
      -1,
    );
  });

  test('a selection is replaced, extended and reduced', () => {
    const before = new Set([1, 2]);
    assert.deepEqual([...changeSelection(before, [3], 'replace')], [3]);
    assert.deepEqual([...changeSelection(before, [3], 'add')], [1, 2, 3]);
    assert.deepEqual([...changeSelection(before, [2, 3], 'remove')], [1]);
  });

  test('flags mark hidden, selected and found points', () => {
    const flags = pointFlags(4, {
      entries: Uint8Array.of(0, 1, 1, 0),
      hidden: new Set([1]),
      selection: new Set([0, 2]),
      found: [2, 3],
    });
    assert.deepEqual([...flags], [2, HIDDEN, HIDDEN | 2 | 4, 4]);
  });

  test('the mean of vectors is computed per element', () => {
    assert.deepEqual(
      meanOf([
        [1, 2],
        [3, -4],
      ]),
      [2, -1],
    );
  });
});

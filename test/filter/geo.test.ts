// Points in shapes: known distances, and properties that hold for random points.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Point, type Polygon, shapeTest } from '../../src/filter/geo.js';
import { createRandom } from '../database/harness.js';

const BERLIN = { lat: 52.52, lon: 13.405 };

/** Returns the smallest whole radius in meters of a circle around `center` that contains the point. */
function distanceTo(center: Point, { lat, lon }: Point): number {
  let low = 0;
  let high = 21_000_000;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (shapeTest('$geo_radius', { center, radius_meters: middle })(lat, lon)) high = middle;
    else low = middle + 1;
  }
  return low;
}

test('distances are those on a sphere with the mean radius of the Earth', () => {
  const quarter = Math.ceil((Math.PI / 2) * 6_371_008.8);
  assert.equal(distanceTo({ lat: 0, lon: 0 }, { lat: 0, lon: 90 }), quarter);
  assert.equal(distanceTo({ lat: 0, lon: 0 }, { lat: 90, lon: 77 }), quarter);
  assert.equal(distanceTo({ lat: 0, lon: 0 }, { lat: 0, lon: -180 }), quarter * 2 - 1);
  assert.equal(distanceTo(BERLIN, BERLIN), 0);
  // One degree of latitude.
  assert.equal(distanceTo(BERLIN, { lat: 53.52, lon: 13.405 }), 111_196);
});

test('a circle with a radius of half the circumference contains every point', () => {
  const isInside = shapeTest('$geo_radius', { center: BERLIN, radius_meters: 20_015_200 });
  const random = createRandom(5);
  for (let i = 0; i < 1_000; i++) assert.ok(isInside(random() * 180 - 90, random() * 360 - 180));
  assert.ok(isInside(-BERLIN.lat, BERLIN.lon - 180));
});

test('a box without width is a part of a meridian, and one without height of a parallel', () => {
  const boxOf = (north: number, west: number, south: number, east: number) =>
    shapeTest('$geo_box', {
      top_left: { lat: north, lon: west },
      bottom_right: { lat: south, lon: east },
    });
  const meridian = boxOf(10, 5, -10, 5);
  assert.deepEqual([meridian(-10, 5), meridian(11, 5), meridian(0, 6)], [true, false, false]);
  const parallel = boxOf(10, 5, 10, 7);
  assert.deepEqual([parallel(10, 7), parallel(9, 6), parallel(10, 8)], [true, false, false]);
  const dateLine = boxOf(10, 180, -10, 180);
  assert.deepEqual([dateLine(0, -180), dateLine(0, 180), dateLine(0, 0)], [true, true, false]);
});

test('a polygon and the same polygon turned around the globe contain the same points', () => {
  const exterior = [
    { lat: -20, lon: -60 },
    { lat: 5, lon: 70 },
    { lat: 40, lon: 10 },
    { lat: 10, lon: 0 },
  ];
  const random = createRandom(7);
  for (let i = 0; i < 2_000; i++) {
    const turn = Math.floor(random() * 16) * 22.5;
    const turned = (lon: number) => ((lon + turn + 540) % 360) - 180;
    const shape: Polygon = {
      exterior: exterior.map(({ lat, lon }) => ({ lat, lon: turned(lon) })),
      interiors: [],
    };
    const lat = Math.floor(random() * 100) - 40.5;
    const lon = Math.floor(random() * 180) - 90.5;
    const isInside = shapeTest('$geo_polygon', { exterior, interiors: [] })(lat, lon);
    assert.equal(shapeTest('$geo_polygon', shape)(lat, turned(lon)), isInside);
  }
});

test('points on an edge that two polygons share belong to both, and all others to one', () => {
  const west = [
    { lat: 0, lon: 0 },
    { lat: 9, lon: 3 },
    { lat: 9, lon: -9 },
  ];
  const east = [
    { lat: 0, lon: 0 },
    { lat: 9, lon: 3 },
    { lat: 0, lon: 9 },
  ];
  const isWest = shapeTest('$geo_polygon', { exterior: west, interiors: [] });
  const isEast = shapeTest('$geo_polygon', { exterior: east, interiors: [] });
  for (let lat = 1; lat < 9; lat++) {
    assert.ok(isWest(lat, lat / 3) && isEast(lat, lat / 3) === isWest(lat, lat / 3));
    assert.ok(isWest(lat, lat / 3 - 0.1) && !isEast(lat, lat / 3 - 0.1));
  }
});

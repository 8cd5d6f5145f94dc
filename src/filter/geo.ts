// Shapes on the globe and tests whether a point is in them, in float64. Documents and columns use the same
// functions, so that they agree to the last bit.
//
// Latitudes are −90 to 90 and longitudes −180 to 180 degrees; −180 and 180 are the same meridian. A border
// belongs to its shape.

export interface Point {
  readonly lat: number;
  readonly lon: number;
}

/**
 * The points whose great-circle distance from the center is at most the radius, by the haversine formula on a
 * sphere with the mean radius of the Earth.
 */
export interface Circle {
  readonly center: Point;
  readonly radius_meters: number;
}

/** If the longitude of `top_left` is greater than that of `bottom_right`, the box contains the 180th meridian. */
export interface Box {
  readonly top_left: Point;
  readonly bottom_right: Point;
}

/**
 * The points inside `exterior` and outside all `interiors`, by the even-odd rule. Edges are straight in latitude
 * and longitude and take the shorter way around the globe.
 */
export interface Polygon {
  readonly exterior: Ring;
  readonly interiors: readonly Ring[];
}

/** At least three points. The last is joined to the first. */
export type Ring = readonly Point[];

export type GeoOperator = '$geo_radius' | '$geo_box' | '$geo_polygon';

export interface Shapes {
  readonly $geo_radius: Circle;
  readonly $geo_box: Box;
  readonly $geo_polygon: Polygon;
}

/** Whether the point with these coordinates, in degrees, is in the shape. */
export type PointTest = (lat: number, lon: number) => boolean;

/** The mean radius R1 of the International Union of Geodesy and Geophysics. */
const EARTH_RADIUS_METERS = 6_371_008.8;
const RADIANS = Math.PI / 180;

const SHAPE_TESTS: {
  readonly [name in GeoOperator]: (shape: Shapes[name]) => PointTest;
} = { $geo_radius: testCircle, $geo_box: testBox, $geo_polygon: testPolygon };

/** Tests are prepared once per shape, not per document, because a polygon may have a thousand points. */
const PREPARED = new WeakMap<object, PointTest>();

export function shapeTest<Name extends GeoOperator>(
  operator: Name,
  shape: Shapes[Name],
): PointTest {
  const known = PREPARED.get(shape);
  if (known !== undefined) return known;
  const prepare: (shape: Shapes[Name]) => PointTest = SHAPE_TESTS[operator];
  const test = prepare(shape);
  PREPARED.set(shape, test);
  return test;
}

export function isGeoOperator(operator: string): operator is GeoOperator {
  return Object.hasOwn(SHAPE_TESTS, operator);
}

export function isLatitude(lat: number): boolean {
  return lat >= -90 && lat <= 90;
}

export function isLongitude(lon: number): boolean {
  return lon >= -180 && lon <= 180;
}

function testCircle({ center, radius_meters }: Circle): PointTest {
  const angle = radius_meters / EARTH_RADIUS_METERS;
  const haversineMax = angle >= Math.PI ? Number.POSITIVE_INFINITY : haversine(angle);
  const cosine = Math.cos(center.lat * RADIANS);
  // Excludes most points without trigonometry. The margin is far above the rounding errors of both formulas.
  const degreesMax = angle / RADIANS + 1e-6;
  return (lat, lon) => {
    if (!(Math.abs(lat - center.lat) <= degreesMax && isLatitude(lat) && isLongitude(lon))) {
      return false;
    }
    const eastWest = cosine * Math.cos(lat * RADIANS) * haversine((lon - center.lon) * RADIANS);
    return haversine((lat - center.lat) * RADIANS) + eastWest <= haversineMax;
  };
}

/** @param angle in radians. */
function haversine(angle: number): number {
  const sine = Math.sin(angle / 2);
  return sine * sine;
}

function testBox({ top_left, bottom_right }: Box): PointTest {
  const west = top_left.lon;
  const east = bottom_right.lon;
  const isBetween =
    west <= east
      ? (lon: number) => lon >= west && lon <= east
      : (lon: number) => lon >= west || lon <= east;
  return (lat, lon) =>
    lat >= bottom_right.lat &&
    lat <= top_left.lat &&
    isLongitude(lon) &&
    (isBetween(lon) || (Math.abs(lon) === 180 && isBetween(-lon)));
}

function testPolygon({ exterior, interiors }: Polygon): PointTest {
  const outer = layOut(exterior);
  const holes = interiors.map(layOut);
  return (lat, lon) =>
    isLatitude(lat) &&
    isLongitude(lon) &&
    sideOf(outer, lat, lon) !== 'outside' &&
    !holes.some((hole) => sideOf(hole, lat, lon) === 'inside');
}

/** A ring on a plane, where longitudes continue beyond 180 degrees. */
interface FlatRing {
  /** [pointCount + 1]; the first point is repeated at the end. */
  readonly lats: Float64Array;
  readonly lons: Float64Array;
  readonly south: number;
  readonly north: number;
  readonly west: number;
  readonly east: number;
}

function layOut(ring: Ring): FlatRing {
  const lats = Float64Array.from([...ring, ring[0]], ({ lat }) => lat);
  const lons = Float64Array.from([...ring, ring[0]], ({ lon }) => lon);
  for (let i = 1; i < lons.length; i++) lons[i] = nearestTurn(lons[i], lons[i - 1]);
  return {
    lats,
    lons,
    south: lats.reduce((a, b) => Math.min(a, b)),
    north: lats.reduce((a, b) => Math.max(a, b)),
    west: lons.reduce((a, b) => Math.min(a, b)),
    east: lons.reduce((a, b) => Math.max(a, b)),
  };
}

/** Whether the edges go around a pole, so that the ring has no inside. */
export function enclosesPole(ring: Ring): boolean {
  const { lons } = layOut(ring);
  return lons[0] !== lons[lons.length - 1];
}

/** Adds the multiple of 360 that brings a longitude within 180 degrees of `other`. */
function nearestTurn(lon: number, other: number): number {
  let nearest = lon;
  while (nearest - other > 180) nearest -= 360;
  while (nearest - other < -180) nearest += 360;
  return nearest;
}

type Side = 'inside' | 'border' | 'outside';

function sideOf(ring: FlatRing, lat: number, lon: number): Side {
  if (lat < ring.south || lat > ring.north) return 'outside';
  // A ring may lie several turns away, and one of 360 degrees contains its first meridian twice.
  const firstTurn = Math.floor((ring.west - lon) / 360);
  let side: Side = 'outside';
  for (let turn = firstTurn; lon + 360 * turn <= ring.east && side !== 'inside'; turn++) {
    const found = sideOnPlane(ring, lat, lon + 360 * turn);
    if (found !== 'outside') side = found;
  }
  return side;
}

/** Counts the edges that a line from the point to the east crosses. */
function sideOnPlane({ lats, lons }: FlatRing, lat: number, lon: number): Side {
  let isInside = false;
  for (let i = 1; i < lats.length; i++) {
    const fromLat = lats[i - 1];
    const toLat = lats[i];
    const fromLon = lons[i - 1];
    const toLon = lons[i];
    // Twice the signed area of the triangle of edge and point: positive if the point is left of the edge.
    const area = (toLon - fromLon) * (lat - fromLat) - (lon - fromLon) * (toLat - fromLat);
    if (area === 0 && isWithin(lat, fromLat, toLat) && isWithin(lon, fromLon, toLon)) {
      return 'border';
    }
    if (fromLat <= lat !== toLat <= lat && area > 0 === toLat > fromLat) isInside = !isInside;
  }
  return isInside ? 'inside' : 'outside';
}

function isWithin(value: number, a: number, b: number): boolean {
  return value >= Math.min(a, b) && value <= Math.max(a, b);
}

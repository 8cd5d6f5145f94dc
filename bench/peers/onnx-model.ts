// Encodes an ONNX model of exhaustive search: one MatMul and one TopK per chunk of rows, then a TopK over
// the results of the chunks. Writes only the protobuf fields that it needs.
//
// queries [batch, D] ─► MatMul rows[c]ᵀ ─► TopK ─► + start of c ─► Concat ─► TopK ─► rows [batch, k]

export interface ModelShape {
  readonly rowCount: number;
  readonly dimension: number;
  readonly chunkRows: number;
  readonly k: number;
}

const FLOAT = 1;
const INT64 = 7;
const ATTRIBUTE_INT = 2;

/** `rows` is row-major [rowCount, dimension]; input `queries`, outputs `scores` and `rows`. */
export function createSearchModel(rows: Float32Array, shape: ModelShape): Uint8Array {
  const { rowCount, dimension, chunkRows, k } = shape;
  const nodes: Bytes[] = [];
  const constants: Bytes[] = [int64Tensor('k', [k])];
  const found: { scores: string[]; rows: string[] } = { scores: [], rows: [] };
  for (let start = 0; start < rowCount; start += chunkRows) {
    const count = Math.min(chunkRows, rowCount - start);
    if (count < k) throw new Error(`expected chunks of at least ${k} rows, found ${count}`);
    const transposed = transpose(rows, start, count, dimension);
    constants.push(tensor(`x${start}`, FLOAT, [dimension, count], transposed));
    constants.push(int64Tensor(`start${start}`, [start]));
    nodes.push(node('MatMul', ['queries', `x${start}`], [`all${start}`]));
    nodes.push(node('TopK', [`all${start}`, 'k'], [`scores${start}`, `local${start}`]));
    nodes.push(node('Add', [`local${start}`, `start${start}`], [`rows${start}`]));
    found.scores.push(`scores${start}`);
    found.rows.push(`rows${start}`);
  }
  nodes.push(node('Concat', found.scores, ['foundScores'], { axis: 1 }));
  nodes.push(node('Concat', found.rows, ['foundRows'], { axis: 1 }));
  nodes.push(node('TopK', ['foundScores', 'k'], ['scores', 'places']));
  nodes.push(node('GatherElements', ['foundRows', 'places'], ['rows'], { axis: 1 }));
  const graph = [
    ...nodes.map((each) => message(1, each)),
    text(2, 'search'),
    ...constants.map((each) => message(5, each)),
    message(11, valueInfo('queries', FLOAT, ['batch', dimension])),
    message(12, valueInfo('scores', FLOAT, ['batch', k])),
    message(12, valueInfo('rows', INT64, ['batch', k])),
  ];
  const operatorSet = integer(2, 17);
  const model = [integer(1, 8), message(7, graph.flat()), message(8, operatorSet)];
  return Buffer.concat(model.flat());
}

/** Parts of a message in order, joined only at the end because some have hundreds of megabytes. */
type Bytes = Uint8Array[];

function node(
  operator: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, number>> = {},
): Bytes {
  return [
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, operator),
    ...Object.entries(attributes).map(([name, value]) =>
      message(5, [text(1, name), integer(3, value), integer(20, ATTRIBUTE_INT)].flat()),
    ),
  ].flat();
}

function valueInfo(name: string, type: number, shape: readonly (string | number)[]): Bytes {
  const dimensions = shape.map((each) =>
    message(1, typeof each === 'string' ? text(2, each) : integer(1, each)),
  );
  const tensorType = [integer(1, type), message(2, dimensions.flat())].flat();
  return [text(1, name), message(2, message(1, tensorType))].flat();
}

function tensor(name: string, type: number, shape: readonly number[], raw: Uint8Array): Bytes {
  return [...shape.map((each) => integer(1, each)), integer(2, type), text(8, name)]
    .concat([message(9, [raw])])
    .flat();
}

function int64Tensor(name: string, values: readonly number[]): Bytes {
  const raw = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  return tensor(name, INT64, [values.length], raw);
}

/** Returns the rows from `start` as columns: [dimension, count] float32. */
function transpose(
  rows: Float32Array,
  start: number,
  count: number,
  dimension: number,
): Uint8Array {
  const columns = new Float32Array(dimension * count);
  // Transposed in tiles, so that source and target stay in the cache.
  const tile = 64;
  for (let first = 0; first < count; first += tile) {
    const end = Math.min(count, first + tile);
    for (let i = 0; i < dimension; i++) {
      for (let row = first; row < end; row++) {
        columns[i * count + row] = rows[(start + row) * dimension + i]!;
      }
    }
  }
  return new Uint8Array(columns.buffer);
}

function integer(field: number, value: number): Bytes {
  return [Uint8Array.from([...varint(field * 8), ...varint(value)])];
}

function text(field: number, value: string): Bytes {
  return message(field, [Buffer.from(value)]);
}

function message(field: number, parts: Bytes): Bytes {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return [Uint8Array.from([...varint(field * 8 + 2), ...varint(length)]), ...parts];
}

/** Encodes seven bits per byte, low bits first; by division, since lengths may exceed 31 bits. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  while (left > 127) {
    bytes.push((left % 128) + 128);
    left = Math.floor(left / 128);
  }
  bytes.push(left);
  return bytes;
}

// The coordinates of rows along principal components, in the worker pool.

import type { Task } from '../../platform/pool.js';
import { toFloat32 } from '../search/hits.js';
import { countRows, type RowValues, visitRows } from './row-values.js';

/** The components of a projection and its origin. */
export interface Axes {
  /** [dimension] */
  readonly mean: Float64Array;
  /** [count, dimension or more] */
  readonly vectors: readonly Float64Array[];
}

interface ProjectInput extends Axes {
  readonly rows: RowValues;
}

/** Returns coordinates, row-major [rowCount, count] float32, all finite. */
export const projectRowsTask: Task<ProjectInput, Float32Array> = {
  name: 'projection.projectRows',
  run({ rows, mean, vectors }) {
    const { dimension } = rows;
    const count = vectors.length;
    const origins = vectors.map((vector) => {
      let sum = 0;
      for (let i = 0; i < dimension; i++) sum += mean[i]! * vector[i]!;
      return sum;
    });
    const coordinates = new Float32Array(countRows(rows) * count);
    visitRows(rows, (index, values, start, factor) => {
      for (let axis = 0; axis < count; axis++) {
        const vector = vectors[axis]!;
        let sum = 0;
        for (let i = 0; i < dimension; i++) sum += values[start + i]! * vector[i]!;
        coordinates[index * count + axis] = toFloat32(sum * factor - origins[axis]!);
      }
    });
    return coordinates;
  },
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

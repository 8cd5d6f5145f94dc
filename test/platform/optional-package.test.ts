import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadOptional, MissingPackageError } from '../../src/platform/optional-package.js';

test('an optional package that is not installed is an error that says what needs it', async () => {
  await assert.rejects(loadOptional('no-such-package/node', 'a.h5: reading HDF5'), (error) => {
    assert.ok(error instanceof MissingPackageError);
    assert.match(error.message, /^a\.h5: reading HDF5: .* no-such-package; run `npm install /);
    return true;
  });
  const { ParquetFile } = await loadOptional<typeof import('parquet-wasm')>('parquet-wasm', 'x');
  assert.equal(typeof ParquetFile.fromFile, 'function');
});

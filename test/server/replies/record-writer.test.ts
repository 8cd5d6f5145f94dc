// Replies written by their schemas.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import {
  createRecordWriter,
  createReplyWriter,
} from '../../../src/server/replies/record-writer.js';
import { schemasOf } from '../../../src/server/schemas/all.js';

const schemas = schemasOf(DEFAULT_LIMITS);
const ignore = () => {};

describe('a reply', () => {
  it('has the fields of its schema by their names on the wire, without absent ones', async () => {
    const write = createReplyWriter(schemas.query.reply);
    const match = { id: 'a"', score: Math.fround(0.1), metadata: '{ "n" : 1.0 }' };
    const page = { matches: [match], hasMore: false, sequence: 3, total: 1, ignored: 'x' };
    assert.equal(
      await write(page, ignore),
      '{"matches":[{"id":"a\\"","score":0.1,"metadata":{ "n" : 1.0 }}],"has_more":false,"total":1,"sequence":3}',
    );
  });

  it('may have no rows, and records inside', async () => {
    const explain = {
      engine: 'simd',
      segmentCount: 1,
      rowsScanned: 2,
      rowsPassedFilter: 2,
      candidatesRescored: 0,
      isCertified: true,
      filterMs: 0.5,
      searchMs: 1,
      assembleMs: 0,
    };
    const page = { matches: [], hasMore: true, nextCursor: 'abc', sequence: 0, explain };
    const text = await createReplyWriter(schemas.query.reply)(page, ignore);
    assert.equal(
      text,
      '{"matches":[],"next_cursor":"abc","has_more":true,"sequence":0,"explain":{"engine":"simd","segment_count":1,"rows_scanned":2,"rows_passed_filter":2,"candidates_rescored":0,"is_certified":true,"filter_ms":0.5,"search_ms":1,"assemble_ms":0}}',
    );
  });

  it('has vectors as numbers or as base64', () => {
    const write = createRecordWriter(schemas.vectors.record);
    const record = { id: 'a', values: Float32Array.of(0.1, 1e9), metadata: undefined };
    assert.equal(write(record), '{"id":"a","values":[0.1,1000000000]}');
    const base64 = Buffer.from(record.values.buffer).toString('base64');
    assert.equal(write(record, 'base64'), `{"id":"a","values":"${base64}"}`);
  });
});

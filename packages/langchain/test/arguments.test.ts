// Arguments that the vector store rejects before it sends anything.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { SyntheticEmbeddings } from '@langchain/core/utils/testing';
import { createClient, SagittaClientError } from '@sagitta/client';
import { type ScriptedServer, startScriptedServer } from '../../../test/support/scripted-server.js';
import { SagittaVectorStore } from '../src/vector-store.js';

let server: ScriptedServer;

before(async () => {
  server = await startScriptedServer([]);
});
after(() => server.close());

/** An argument as a program without types may pass it. */
const any = (value: unknown) => value as never;

const REFUSED: readonly [what: string, call: (store: SagittaVectorStore) => unknown, RegExp][] = [
  [
    'a text in place of the ids of documents',
    (store) =>
      store.addDocuments(
        ['a', 'b'].map((pageContent) => ({ pageContent, metadata: {} })),
        any({ ids: '42' }),
      ),
    /^expected an array of ids, one per document, found "42"$/,
  ],
  [
    'an undefined condition of a search',
    (store) => store.similaritySearchVectorWithScore([1], 4, any({ user: undefined })),
    /^found undefined at \/filter\/user, expected a value that JSON has: use null, or leave it out$/,
  ],
  [
    'an undefined condition of a deletion',
    (store) => store.delete({ filter: any({ user: undefined }) }),
    /^found undefined at \/filter\/user, expected a value that JSON has: use null, or leave it out$/,
  ],
  [
    'an undefined filter of a deletion',
    (store) => store.delete({ filter: any(undefined) }),
    /^found undefined at \/filter, expected one of/,
  ],
];

for (const [what, call, message] of REFUSED) {
  it(`${what}: nothing is sent, and the error says where`, async () => {
    const client = createClient({ baseUrl: server.url });
    const embeddings = new SyntheticEmbeddings({ vectorSize: 1 });
    const store = new SagittaVectorStore(embeddings, { collection: 'docs', client });
    await assert.rejects(
      async () => call(store),
      (error: unknown) => {
        assert.ok(error instanceof SagittaClientError, String(error));
        assert.equal(error.code, 'invalid_argument');
        assert.match(error.message, message);
        return true;
      },
    );
    assert.equal(server.requests.length, 0);
  });
}

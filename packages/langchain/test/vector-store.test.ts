// The LangChain.js vector store, with the real package and a real server.

import assert from 'node:assert/strict';
import { before, beforeEach, it } from 'node:test';
import { Document } from '@langchain/core/documents';
import { SyntheticEmbeddings } from '@langchain/core/utils/testing';
import { type Client, createClient } from '@sagitta/client';
import { emptyServer } from '../../../test/support/shared-server.js';
import { SagittaVectorStore } from '../src/vector-store.js';

/** Maps equal texts to equal vectors, and different texts to different ones. */
const embeddings = new SyntheticEmbeddings({ vectorSize: 8 });

let url: string;
let client: Client;
let collection: string;
let collectionCount = 0;

before(async () => {
  url = await emptyServer();
  client = createClient({ baseUrl: url });
});
beforeEach(() => {
  collection = `chain-${collectionCount++}`;
});

const DOCUMENTS = [
  new Document({ id: 'whale', pageContent: 'On whales', metadata: { year: 2021, topic: 'sea' } }),
  new Document({ id: 'bread', pageContent: 'On bread', metadata: { year: 2023, topic: 'food' } }),
  new Document({ id: 'dolphin', pageContent: 'Dolphins', metadata: { year: 2023, topic: 'sea' } }),
];
const open = () => SagittaVectorStore.fromDocuments(DOCUMENTS, embeddings, { collection, client });
const idsOf = (found: readonly { readonly id?: string | undefined }[]) => found.map(({ id }) => id);

it('adding documents creates the collection, and a text is nearest to itself', async () => {
  const store = await open();
  const record = await client.collections.get(collection);
  assert.deepEqual([record.dimension, record.metric, record.vector_count], [8, 'cosine', 3]);
  const [found, ...others] = await store.similaritySearchWithScore('On bread', 2);
  assert.equal(others.length, 1);
  const [document, score] = found!;
  assert.ok(document instanceof Document);
  assert.deepEqual({ ...document }, { ...DOCUMENTS[1] });
  assert.ok(Math.abs(score - 1) < 1e-6);
  assert.ok(score >= others[0]![1]);
});

it('filters apply before the search', async () => {
  const store = await open();
  const found = await store.similaritySearch('On bread', 3, { topic: 'sea', year: { $gte: 2022 } });
  assert.deepEqual(idsOf(found), ['dolphin']);
  const byText = await store.similaritySearch('On bread', 3, { page_content: 'On whales' });
  assert.deepEqual(idsOf(byText), ['whale']);
});

it('ids come from the options, or from the documents, or from the server', async () => {
  const store = new SagittaVectorStore(embeddings, {
    collection,
    client: { baseUrl: url },
    metric: 'euclidean',
  });
  const unnamed = new Document({ pageContent: 'x' });
  const given = await store.addDocuments([DOCUMENTS[0]!, unnamed], { ids: ['a', 'b'] });
  assert.deepEqual(given, ['a', 'b']);
  const [own, made] = await store.addDocuments([DOCUMENTS[0]!, unnamed]);
  assert.equal(own, 'whale');
  assert.equal((await store.vectors.get(made!)).id, made);
  assert.deepEqual(await store.addDocuments([]), []);
  assert.equal((await client.collections.get(collection)).metric, 'euclidean');
});

it('a vector added to the collection of a store leaves its documents unchanged', async () => {
  const store = await open();
  await client.collections.update(collection, { vectors: { title: { dimension: 2 } } });
  await store.vectors.upsert([{ id: 'whale', vectors: { title: [1, 0] } }], { mode: 'patch' });
  const [found] = await store.similaritySearch('On whales', 1);
  assert.deepEqual({ ...found }, { ...DOCUMENTS[0] });
  await store.addDocuments([DOCUMENTS[1]!]);
  assert.deepEqual(idsOf(await store.similaritySearch('On bread', 1)), ['bread']);
  await client.collections.update(collection, { vectors: { title: null } });
  assert.equal((await store.similaritySearch('On bread', 3)).length, 3);
});

it('documents with the same id replace each other', async () => {
  const store = await open();
  await store.addDocuments([new Document({ id: 'whale', pageContent: 'On bread' })]);
  assert.equal(await store.vectors.count(), 3);
  assert.deepEqual((await store.vectors.get('whale')).metadata, { page_content: 'On bread' });
});

it('more documents than fit into a request are written in order', async () => {
  const store = new SagittaVectorStore(embeddings, { collection, client });
  const documents = Array.from({ length: 1_001 }, (_, n) => new Document({ pageContent: `n${n}` }));
  const vectors = documents.map((_, n) => [n, 1]);
  const ids = await store.addVectors(vectors, documents);
  assert.equal(new Set(ids).size, 1_001);
  assert.deepEqual((await store.vectors.get(ids[1_000]!)).values, [1_000, 1]);
});

it('deletes by ids, by filter and everything', async () => {
  const store = await open();
  await store.delete({ ids: ['whale', 'nobody'] });
  await store.delete({ ids: [] });
  assert.equal(await store.vectors.count(), 2);
  await store.delete({ filter: { topic: 'food' } });
  assert.equal(await store.vectors.count(), 1);
  await store.delete({ deleteAll: true });
  assert.equal(await store.vectors.count(), 0);
});

it('maximal marginal relevance prefers diverse documents', async () => {
  const vectors: Record<string, number[]> = {
    query: [1, 0, 0],
    twin: [1, 0.01, 0],
    'other twin': [1, 0.011, 0],
    side: [0.8, 0, 0.6],
  };
  const store = new SagittaVectorStore(
    {
      embedQuery: async (text) => vectors[text]!,
      embedDocuments: async (texts) => texts.map((text) => vectors[text]!),
    },
    { collection, client },
  );
  const texts = ['twin', 'other twin', 'side'];
  await store.addDocuments(texts.map((pageContent) => new Document({ pageContent })));
  const textsOf = (found: readonly Document[]) => found.map(({ pageContent }) => pageContent);
  const nearest = await store.similaritySearch('query', 2);
  assert.deepEqual(textsOf(nearest), ['twin', 'other twin']);
  const diverse = await store.maxMarginalRelevanceSearch('query', { k: 2, lambda: 0.4 });
  assert.deepEqual(textsOf(diverse), ['twin', 'side']);
  const filter = { page_content: { $ne: 'side' } };
  const retriever = store.asRetriever({
    k: 2,
    filter,
    searchType: 'mmr',
    searchKwargs: { fetchK: 2, lambda: 0.4 },
  });
  assert.deepEqual(textsOf(await retriever.invoke('query')), ['twin', 'other twin']);
});

it('works as a retriever with a filter', async () => {
  const store = await open();
  const found = await store.asRetriever(1, { topic: 'sea' }).invoke('Dolphins');
  assert.deepEqual(idsOf(found), ['dolphin']);
});

it('fromTexts accepts metadata for all texts or for each', async () => {
  const config = { collection, client, contentKey: 'text' };
  await SagittaVectorStore.fromTexts(['a', 'b'], [{ n: 1 }, { n: 2 }], embeddings, config);
  const store = await SagittaVectorStore.fromTexts(['c'], { n: 3 }, embeddings, config);
  const [found] = await store.similaritySearch('b', 1, { n: 2 });
  assert.deepEqual([found!.pageContent, found!.metadata], ['b', { n: 2 }]);
  const { vectors } = await store.vectors.list();
  assert.deepEqual(
    vectors.map(({ metadata }) => metadata),
    [
      { n: 1, text: 'a' },
      { n: 2, text: 'b' },
      { n: 3, text: 'c' },
    ],
  );
});

it('an existing collection is used unchanged, and a missing one is an error', async () => {
  const config = { collection, client };
  const missing = SagittaVectorStore.fromExistingIndex(embeddings, config);
  await assert.rejects(missing, { code: 'collection_not_found' });
  await client.collections.create({ id: collection, dimension: 8, metric: 'dot' });
  await client.collection(collection).upsert([{ id: 'bare', values: new Float32Array(8) }]);
  const store = await SagittaVectorStore.fromExistingIndex(embeddings, config);
  const [found] = await store.similaritySearch('anything', 1);
  assert.deepEqual([found!.id, found!.pageContent, found!.metadata], ['bare', '', {}]);
  await store.addDocuments(DOCUMENTS);
  await client.collections.delete(collection);
  await assert.rejects(store.addDocuments(DOCUMENTS), { code: 'collection_not_found' });
});

it('rejects invalid input before writing anything', async () => {
  const store = await open();
  const clash = new Document({ pageContent: 'x', metadata: { page_content: 'y' } });
  await assert.rejects(store.addDocuments([clash]), /page_content/);
  await assert.rejects(store.addVectors([[1]], DOCUMENTS), /expected 3 vectors/);
  await assert.rejects(store.addDocuments(DOCUMENTS, { ids: ['a'] }), /expected 3 ids/);
  const mixed = SagittaVectorStore.fromTexts(['a'], [], embeddings, { collection, client });
  await assert.rejects(mixed, /expected 1 metadatas/);
  await assert.rejects(
    store.addVectors(
      [[1, 2]],
      [clash].map(() => DOCUMENTS[0]!),
    ),
    {
      code: 'dimension_mismatch',
    },
  );
  assert.equal(await store.vectors.count(), 3);
});

it('rejects a document that is too long before its text is embedded', async () => {
  let embeddedCount = 0;
  const counting = {
    embedQuery: (text: string) => embeddings.embedQuery(text),
    async embedDocuments(texts: string[]) {
      embeddedCount += texts.length;
      return embeddings.embedDocuments(texts);
    },
  };
  const store = new SagittaVectorStore(counting, { collection, client });
  const long = new Document({ id: 'long', pageContent: 'é'.repeat(20_480) });
  await assert.rejects(store.addDocuments([...DOCUMENTS, long]), {
    code: 'invalid_argument',
    message:
      'document 3 ("long") takes 40979 bytes as metadata, which includes its text; expected at most 40960. Split it, for ' +
      'example with RecursiveCharacterTextSplitter, or raise SAGITTA_METADATA_BYTES_MAX of the server',
  });
  assert.equal(embeddedCount, 0);
  const fits = new Document({ id: 'fits', pageContent: 'é'.repeat(20_470) });
  assert.deepEqual(await store.addVectors([[1, 2]], [fits]), ['fits']);
});

it('rejects unknown options and suggests the intended name', async () => {
  const any = (value: object) => value as never;
  const config = { collection, client };
  assert.throws(
    () => new SagittaVectorStore(embeddings, any({ ...config, content_key: 'text' })),
    /^SagittaClientError: among the options: There is nothing named "content_key" here; did you mean "contentKey"\?$/,
  );
  assert.throws(
    () => new SagittaVectorStore(embeddings, any({ collection, client: { baseURL: url } })),
    /named "baseURL" here; did you mean "baseUrl"\?$/,
  );
  const store = await open();
  await assert.rejects(
    store.addDocuments(DOCUMENTS, any({ id: ['a', 'b', 'c'] })),
    /mean "ids"\?$/,
  );
  await assert.rejects(store.delete(any({ filters: {} })), /mean "filter"\?$/);
  await assert.rejects(store.delete(any({ deleteAll: false })), { code: 'invalid_request' });
  await assert.rejects(
    store.maxMarginalRelevanceSearch('On bread', any({ k: 1, fetch_k: 2 })),
    /mean "fetchK"\?$/,
  );
  assert.equal(await store.vectors.count(), 3);
});

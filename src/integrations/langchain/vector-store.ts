// A vector store of LangChain.js over a collection, entry point `sagitta/langchain`. A document is a
// vector whose metadata is the document's, and its text beside it under a name of its own; so a
// filter of Sagitta reaches both.

import { Document, type DocumentInterface } from '@langchain/core/documents';
import type { EmbeddingsInterface } from '@langchain/core/embeddings';
import { maximalMarginalRelevance } from '@langchain/core/utils/math';
import { type MaxMarginalRelevanceSearchOptions, VectorStore } from '@langchain/core/vectorstores';
import {
  type Client,
  type ClientOptions,
  createClient,
  type DeleteSelection,
  type Match,
  SagittaClientError,
  type Vectors,
} from '../../client/client.js';
import type { JsonObject, Metric } from '../../common/types.js';

export interface SagittaVectorStoreConfig {
  /** The collection's id. */
  readonly collection: string;
  /** A client, or what one is made of. */
  readonly client: Client | ClientOptions;
  /** The member of a vector's metadata that holds the text; `page_content` when absent. */
  readonly contentKey?: string;
  /**
   * Whether a collection that is not there is made by the first documents, which also give its
   * dimension; true when absent.
   */
  readonly createIfMissing?: boolean;
  /** Of a collection that is made; `cosine` when absent. */
  readonly metric?: Metric;
}

export interface AddOptions {
  /** One a document. Else each document's own, and where it has none, one of the service. */
  readonly ids?: readonly string[];
  readonly signal?: AbortSignal;
}

/** Exactly one of them. */
export type DeleteParams =
  | { readonly ids: readonly string[] }
  | { readonly filter: JsonObject }
  | { readonly deleteAll: true };

const CONTENT_KEY_DEFAULT = 'page_content';
/** Of one request; the service takes 10 000 rows and 64 MB. */
const ROWS_PER_REQUEST = 1_000;
const CHARACTERS_PER_REQUEST = 8_000_000;
/** As in other stores of LangChain. */
const MMR_FETCH_COUNT = 20;

export class SagittaVectorStore extends VectorStore {
  /** As in queries of Sagitta: `{ year: { $gte: 2020 } }`. */
  declare FilterType: JsonObject;
  /** For what LangChain has no name for. */
  readonly vectors: Vectors;
  readonly #client: Client;
  readonly #config: SagittaVectorStoreConfig;
  readonly #contentKey: string;
  #creation: Promise<void> | undefined;

  static override lc_name(): string {
    return 'SagittaVectorStore';
  }

  /** Sends nothing by itself. */
  constructor(embeddings: EmbeddingsInterface, config: SagittaVectorStoreConfig) {
    // The base class keeps what it is given where traces may show it: no key of the client's.
    super(embeddings, { collection: config.collection });
    this.#config = config;
    this.#client = 'baseUrl' in config.client ? createClient(config.client) : config.client;
    this.#contentKey = config.contentKey ?? CONTENT_KEY_DEFAULT;
    this.vectors = this.#client.collection(config.collection);
  }

  override _vectorstoreType(): string {
    return 'sagitta';
  }

  /** Embeds and writes; returns the ids in the order of the documents. */
  override async addDocuments(
    documents: DocumentInterface[],
    options?: AddOptions,
  ): Promise<string[]> {
    const texts = documents.map(({ pageContent }) => pageContent);
    return this.addVectors(await this.embeddings.embedDocuments(texts), documents, options);
  }

  /**
   * Writes documents whose vectors are known, replacing those of the same ids; returns the ids in
   * their order. More than 1 000 are several requests: after an error some may be written.
   */
  override async addVectors(
    vectors: number[][],
    documents: DocumentInterface[],
    options: AddOptions = {},
  ): Promise<string[]> {
    checkCount('vectors', vectors.length, documents.length);
    if (options.ids !== undefined) checkCount('ids', options.ids.length, documents.length);
    if (documents.length === 0) return [];
    await this.#createCollection(vectors[0]!.length);
    const rows = documents.map((document, at) => {
      const id = options.ids?.[at] ?? document.id;
      return {
        ...(id !== undefined && { id }),
        values: Float32Array.from(vectors[at]!),
        metadata: this.#toMetadata(document),
      };
    });
    const ids: string[] = [];
    for (const part of partsOf(rows, documents)) {
      const reply = await this.vectors.upsert(part, options);
      // Without `ids` in the reply every row had one of its own.
      ids.push(...(reply.ids ?? part.map(({ id }) => id!)));
    }
    return ids;
  }

  /** By ids (those that are not there are no error), by filter, or everything. */
  override async delete(params: DeleteParams): Promise<void> {
    const selection: DeleteSelection = 'deleteAll' in params ? { all: true } : params;
    if ('ids' in selection && selection.ids.length === 0) return;
    await this.vectors.deleteMany(selection);
  }

  /** The k nearest, best first, with their scores: higher is better, whatever the metric. */
  override async similaritySearchVectorWithScore(
    query: number[],
    k: number,
    filter?: JsonObject,
  ): Promise<[Document, number][]> {
    const matches = await this.#search(query, k, filter, false);
    return matches.map((match) => [this.#toDocument(match), match.score]);
  }

  /** Of the `fetchK` (20) nearest, the k that are near and unlike each other (`lambda` 0.5). */
  override async maxMarginalRelevanceSearch(
    query: string,
    options: MaxMarginalRelevanceSearchOptions<JsonObject>,
  ): Promise<Document[]> {
    const { k, fetchK = MMR_FETCH_COUNT, lambda, filter } = options;
    const vector = await this.embeddings.embedQuery(query);
    const matches = await this.#search(vector, Math.max(k, fetchK), filter, 'float32');
    const values = matches.map((match) => Array.from(match.values!));
    const chosen = maximalMarginalRelevance(vector, values, lambda, k);
    return chosen.map((at) => this.#toDocument(matches[at]!));
  }

  static override async fromTexts(
    texts: string[],
    metadatas: object[] | object,
    embeddings: EmbeddingsInterface,
    config: SagittaVectorStoreConfig,
  ): Promise<SagittaVectorStore> {
    if (Array.isArray(metadatas)) checkCount('metadatas', metadatas.length, texts.length);
    const documents = texts.map((pageContent, at) => {
      const metadata = (Array.isArray(metadatas) ? metadatas[at] : metadatas) as object;
      return new Document({ pageContent, metadata: { ...metadata } });
    });
    return SagittaVectorStore.fromDocuments(documents, embeddings, config);
  }

  static override async fromDocuments(
    documents: DocumentInterface[],
    embeddings: EmbeddingsInterface,
    config: SagittaVectorStoreConfig,
  ): Promise<SagittaVectorStore> {
    const store = new SagittaVectorStore(embeddings, config);
    await store.addDocuments(documents);
    return store;
  }

  /** Throws `collection_not_found` where there is no such collection; never makes one. */
  static async fromExistingCollection(
    embeddings: EmbeddingsInterface,
    config: Omit<SagittaVectorStoreConfig, 'createIfMissing' | 'metric'>,
  ): Promise<SagittaVectorStore> {
    const store = new SagittaVectorStore(embeddings, { ...config, createIfMissing: false });
    await store.#client.collections.get(config.collection);
    return store;
  }

  async #search<Asked extends false | 'float32'>(
    query: number[],
    k: number,
    filter: JsonObject | undefined,
    asked: Asked,
  ) {
    const { matches } = await this.vectors.query({
      vector: Float32Array.from(query),
      top_k: k,
      include_metadata: true,
      include_values: asked,
      ...(filter !== undefined && { filter }),
    });
    return matches;
  }

  #createCollection(dimension: number): Promise<void> {
    const { collection, createIfMissing = true, metric } = this.#config;
    if (!createIfMissing) return Promise.resolve();
    this.#creation ??= this.#create({
      id: collection,
      dimension,
      ...(metric !== undefined && { metric }),
    }).catch((error: unknown) => {
      this.#creation = undefined;
      throw error;
    });
    return this.#creation;
  }

  /** A collection that is there is used as it is: a wrong dimension is told of by the write. */
  async #create(input: { id: string; dimension: number; metric?: Metric }): Promise<void> {
    try {
      await this.#client.collections.get(input.id);
    } catch (error) {
      if (!(error instanceof SagittaClientError && error.code === 'collection_not_found')) {
        throw error;
      }
      await this.#client.collections.create(input, { ifNotExists: true });
    }
  }

  #toMetadata({ pageContent, metadata }: DocumentInterface): JsonObject {
    if (this.#contentKey in metadata) {
      throw new SagittaClientError(
        'invalid_argument',
        `the metadata of a document has a member "${this.#contentKey}", under which its text is kept; ` +
          'name another contentKey',
      );
    }
    return { ...metadata, [this.#contentKey]: pageContent } as JsonObject;
  }

  #toDocument({ id, metadata: stored = {} }: Pick<Match, 'id' | 'metadata'>): Document {
    const { [this.#contentKey]: content, ...metadata } = stored;
    // A vector that somebody else has written may have no text.
    return new Document({ id, pageContent: typeof content === 'string' ? content : '', metadata });
  }
}

function checkCount(what: string, found: number, expected: number): void {
  if (found === expected) return;
  const detail = `expected ${expected} ${what}, one a document, found ${found}`;
  throw new SagittaClientError('invalid_argument', detail);
}

function* partsOf<Row extends { readonly values: Float32Array }>(
  rows: readonly Row[],
  documents: readonly DocumentInterface[],
): Generator<Row[]> {
  let part: Row[] = [];
  let characters = 0;
  for (const [at, row] of rows.entries()) {
    const length = documents[at]!.pageContent.length + 6 * row.values.length;
    const isFull = part.length >= ROWS_PER_REQUEST || characters + length > CHARACTERS_PER_REQUEST;
    if (isFull && part.length > 0) {
      yield part;
      part = [];
      characters = 0;
    }
    part.push(row);
    characters += length;
  }
  yield part;
}

// Blobs in a bucket of S3, or of a service with the same interface.

import { createHash } from 'node:crypto';
import { AwsClient } from 'aws4fetch';
import type { BlobStoreSettings } from '../../platform/settings.js';
import { assertBlobName, type Blobs, type ByteRange, requireLength } from './blobs.js';

export type S3Settings = Omit<Extract<BlobStoreSettings, { kind: 's3' }>, 'kind'>;

/** Attempts after the first one, when the service answers with 429 or 5xx. */
const RETRIES = 5;
const RETRY_MS = 100;
const REQUEST_MS_MAX = 120_000;
const MESSAGE_CHARACTERS_MAX = 500;

interface Request {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal | undefined;
}

export class S3Blobs implements Blobs {
  readonly #settings: S3Settings;
  readonly #client: AwsClient;

  constructor(settings: S3Settings) {
    this.#settings = settings;
    this.#client = new AwsClient({
      accessKeyId: settings.accessKeyId,
      secretAccessKey: settings.secretAccessKey,
      ...(settings.sessionToken === undefined ? {} : { sessionToken: settings.sessionToken }),
      region: settings.region,
      service: 's3',
      retries: RETRIES,
      initRetryMs: RETRY_MS,
    });
  }

  async put(name: string, parts: readonly Uint8Array[], signal?: AbortSignal): Promise<void> {
    const body = Buffer.concat(parts);
    // The service refuses a body that was damaged on its way.
    const headers = {
      'content-md5': createHash('md5').update(body).digest('base64'),
      'x-amz-content-sha256': createHash('sha256').update(body).digest('hex'),
    };
    const response = await this.#request(name, { method: 'PUT', body, headers, signal });
    await requireStatus(response, [200], `writing ${name}`);
    await response.arrayBuffer();
  }

  async get(
    name: string,
    range?: ByteRange,
    signal?: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    if (range !== undefined && range.from === range.to) return new Uint8Array();
    const headers = range === undefined ? {} : { range: `bytes=${range.from}-${range.to - 1}` };
    const response = await this.#request(name, { method: 'GET', headers, signal });
    if (response.status === 404) {
      await requireKind(response, 'NoSuchKey', `reading ${name}`);
      return undefined;
    }
    await requireStatus(response, [range === undefined ? 200 : 206], `reading ${name}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    requireLength(name, bytes, range);
    return bytes;
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<string> {
    const { prefix: ownPrefix } = this.#settings;
    let token: string | undefined;
    do {
      const query = {
        'list-type': '2',
        prefix: ownPrefix + prefix,
        ...(token === undefined ? {} : { 'continuation-token': token }),
      };
      const response = await this.#request(null, { method: 'GET', query, signal });
      await requireStatus(response, [200], `listing ${prefix}`);
      const xml = await response.text();
      // Names have plain characters only, so they contain no entities.
      for (const [, key] of xml.matchAll(/<Key>([^<]*)<\/Key>/g))
        yield key!.slice(ownPrefix.length);
      token = decodeEntities(
        /<NextContinuationToken>([^<]*)<\/NextContinuationToken>/.exec(xml)?.[1],
      );
    } while (token !== undefined);
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    const response = await this.#request(name, { method: 'DELETE', signal });
    if (response.status !== 404) await requireStatus(response, [200, 204], `removing ${name}`);
    await response.arrayBuffer();
  }

  /** `name`: null for the bucket itself. */
  #request(
    name: string | null,
    { method, query = {}, headers = {}, body, signal }: Request,
  ): Promise<Response> {
    if (name !== null) assertBlobName(name);
    const { endpoint, bucket, prefix } = this.#settings;
    const url = new URL(endpoint);
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${bucket}${name === null ? '' : `/${prefix}${name}`}`;
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    const timeout = AbortSignal.timeout(REQUEST_MS_MAX);
    return this.#client.fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
  }
}

async function requireStatus(
  response: Response,
  expected: readonly number[],
  what: string,
): Promise<void> {
  if (!expected.includes(response.status))
    throw unexpected(response, await messageOf(response), what);
}

/** Tells a missing blob from a missing bucket. */
async function requireKind(response: Response, code: string, what: string): Promise<void> {
  const message = await messageOf(response);
  if (!message.includes(`<Code>${code}</Code>`)) throw unexpected(response, message, what);
}

function unexpected({ status }: Response, message: string, what: string): Error {
  return new Error(`The object store answered ${status} to ${what}: ${message}`);
}

async function messageOf(response: Response): Promise<string> {
  return (await response.text()).slice(0, MESSAGE_CHARACTERS_MAX);
}

function decodeEntities(text: string | undefined): string | undefined {
  return text
    ?.replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}

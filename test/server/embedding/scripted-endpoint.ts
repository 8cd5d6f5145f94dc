// A small local endpoint with the embeddings API of OpenAI, whose replies a test scripts.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface EmbeddingCall {
  readonly headers: IncomingMessage['headers'];
  readonly body: {
    readonly model: string;
    readonly input: readonly string[];
    readonly dimensions?: number;
  };
}

type Answer = (call: EmbeddingCall, response: ServerResponse) => void;

export interface ScriptedEndpoint {
  readonly url: string;
  readonly calls: readonly EmbeddingCall[];
  /** Replies to calls until it is replaced. */
  answer: Answer;
  close(): Promise<void>;
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/** The length of the text and the number of its vowels. */
function vectorOf(text: string): readonly [number, number] {
  return [text.length, text.replace(/[^aeiou]/g, '').length];
}

/** Shuffled; the items contain their indexes. */
export const answerWell: Answer = ({ body }, response) => {
  const data = body.input.map((text, index) => ({ index, embedding: vectorOf(text) }));
  sendJson(response, 200, { object: 'list', model: body.model, data: data.reverse() });
};

export async function startEndpoint(): Promise<ScriptedEndpoint> {
  const calls: EmbeddingCall[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as EmbeddingCall['body'];
    const call = { headers: request.headers, body };
    calls.push(call);
    endpoint.answer(call, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const endpoint: ScriptedEndpoint = {
    url: `http://127.0.0.1:${port}/v1/embeddings`,
    calls,
    answer: answerWell,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return endpoint;
}

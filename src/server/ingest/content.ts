// What bodies are made of: JSON, streams where the route takes them, and a clear refusal of the rest.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { JSON_TYPE, STREAM_TYPES } from '../media-types.js';
import { BodyStream } from '../transport/body-stream.js';
import { readBody } from './read-body.js';

/** Hands bodies over as bytes, whole or as they arrive; the handlers parse them. */
export function addBodyParsers(app: FastifyInstance, limits: Limits): void {
  app.removeAllContentTypeParsers();
  for (const type of STREAM_TYPES) {
    app.addContentTypeParser(type, async (request: FastifyRequest) => {
      const { streamTypes = [] } = request.routeOptions.config;
      const why = streamTypes.includes(type)
        ? refuseContent(request, type)
        : `This route takes ${JSON_TYPE}; found ${type}.`;
      if (why !== null) throw new SagittaError('unsupported_media_type', why);
      return new BodyStream(request, limits);
    });
  }
  for (const type of [JSON_TYPE, 'application/merge-patch+json']) {
    app.addContentTypeParser(type, async (request: FastifyRequest) => {
      const why = refuseContent(request, type);
      if (why !== null) throw new SagittaError('unsupported_media_type', why);
      return readBody(request, limits);
    });
  }
}

function refuseContent(request: FastifyRequest, type: string): string | null {
  const { 'content-type': contentType = '', 'content-encoding': encoding } = request.headers;
  if (encoding !== undefined && encoding !== 'identity') {
    return `The body is encoded as ${encoding}; only plain bodies are read.`;
  }
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    return `The body is in ${charset}; JSON is UTF-8.`;
  }
  if (type === 'application/merge-patch+json' && request.method !== 'PATCH') {
    return `${type} is for PATCH; send application/json.`;
  }
  return null;
}

// All schemas of an application. They depend on its limits; applications with the same limits share them.

import type { Limits } from '../../common/limits.js';
import { aggregateSchemas } from './aggregate.js';
import { aliasSchemas } from './aliases.js';
import { auditSchemas } from './audit.js';
import { backupSchemas } from './backups.js';
import { basicSchemas } from './basics.js';
import { clusterSchemas } from './cluster.js';
import { collectionSchemas } from './collections.js';
import { keySchemas } from './keys.js';
import { principalSchemas } from './principal.js';
import { querySchemas } from './query.js';
import { scanSchemas } from './scans.js';
import { serviceSchemas } from './service.js';
import { trafficSchemas } from './traffic.js';
import { vectorSchemas } from './vectors.js';

const madeFor = new WeakMap<Limits, Schemas>();

/**
 * The schemas for these limits, built once: zod takes 10 ms to create them, and more to compile those that are
 * used.
 */
export function schemasOf(limits: Limits): Schemas {
  const known = madeFor.get(limits);
  if (known !== undefined) return known;
  const made = createSchemas(limits);
  madeFor.set(limits, made);
  return made;
}

function createSchemas(limits: Limits) {
  const basics = basicSchemas(limits);
  const aggregate = aggregateSchemas(limits, basics);
  return {
    basics,
    aggregate,
    collections: collectionSchemas(limits, basics),
    aliases: aliasSchemas(basics),
    vectors: vectorSchemas(limits, basics),
    query: querySchemas(limits, basics, aggregate),
    scans: scanSchemas(limits, basics),
    keys: keySchemas,
    principal: principalSchemas,
    audit: auditSchemas(limits, basics),
    backups: backupSchemas,
    service: serviceSchemas,
    cluster: clusterSchemas,
    traffic: trafficSchemas,
  };
}

export type Schemas = ReturnType<typeof createSchemas>;

// The cluster that the service may be a node of.

import { z } from 'zod';
import { count } from './basics.js';
import { serviceProblem } from './service.js';

const NODE_EXAMPLE = {
  name: 'sagitta-0',
  url: 'http://sagitta-0:8484',
  zone: 'a',
  version: '1.0.0',
  state: 'serving',
  collection_count: 3,
  held_count: 7,
  drain: 'none',
  silent_seconds: 0,
  problems: [],
} as const;

const node = z
  .object({
    name: z.string().meta({ description: 'The configured name of the node.' }),
    url: z.string().meta({
      description: 'The URL for other nodes; empty until the node answers requests.',
    }),
    zone: z.string().meta({
      description: 'The failure domain of the node; empty if none is configured.',
    }),
    version: z.string().meta({ description: 'The version of the program.' }),
    state: z.enum(['joining', 'serving', 'leaving', 'absent']).meta({
      description:
        '`joining`: requests are not answered yet; `leaving`: it is about to stop; `absent`: the replying node has not heard from it recently, although it did not leave.',
    }),
    collection_count: count('The number of collections whose writes the node carries out.'),
    held_count: count('The number of collections that the node holds.'),
    drain: z.enum(['none', 'draining', 'drained']).meta({
      description:
        '`draining`: it is to be stopped, and other nodes have yet to take over from it; `drained`: it can be stopped.',
    }),
    silent_seconds: z.number().min(0).meta({
      description: 'How long it has not been heard from, if it is absent; otherwise 0.',
    }),
    problems: z.array(serviceProblem).meta({
      description: 'What is wrong with it, as it has announced itself; empty for an absent node.',
    }),
  })
  .meta({
    id: 'ClusterNode',
    description: 'A node of the cluster that the replying node has heard from.',
    examples: [NODE_EXAMPLE],
  });

const LOG_SERVER_EXAMPLE = { name: 'nats-0', is_leader: true, silent_seconds: 0, lag: 0 } as const;

const logServer = z
  .object({
    name: z.string().meta({ description: 'The name of the NATS server.' }),
    is_leader: z.boolean().meta({ description: 'Whether it leads the log.' }),
    silent_seconds: z.number().min(0).meta({
      description: 'How long the leader has not heard from it; up to 2 while nothing is written.',
    }),
    lag: count('Operations of the log that it has not received yet.'),
  })
  .meta({
    id: 'LogServer',
    description: 'A NATS server that stores the log of the catalogue.',
    examples: [LOG_SERVER_EXAMPLE],
  });

const COLLECTION_EXAMPLE = {
  id: 'articles',
  code: 'no_leader',
  detail: 'None of the nodes that hold it serves: sagitta-1, sagitta-2.',
} as const;

const collectionProblem = z
  .object({
    id: z.string().meta({ description: 'The id of the collection.' }),
    code: serviceProblem.shape.code,
    detail: serviceProblem.shape.detail,
  })
  .meta({
    id: 'CollectionProblem',
    description: 'What is wrong with the log of a collection.',
    examples: [COLLECTION_EXAMPLE],
  });

const durability = z
  .object({
    state: z.enum(['verified', 'unverified', 'insufficient']).meta({
      description:
        '`verified`: every NATS server syncs each message before it acknowledges it; `unverified`: this is unknown; `insufficient`: acknowledged writes can be lost.',
    }),
    detail: z.string().meta({ description: 'What was found, and what to do about it.' }),
  })
  .meta({
    id: 'ClusterDurability',
    description: 'Whether the logs of the cluster preserve acknowledged writes.',
    examples: [
      {
        state: 'verified',
        detail:
          'nats-0 (http://nats-0:8222), nats-1 (http://nats-1:8222), nats-2 (http://nats-2:8222) sync every message before they acknowledge it; each log has 3 replicas.',
      },
    ],
  });

const DIGEST = '5f'.repeat(32);
const digest = z.string().meta({ description: '64 hexadecimal digits.', examples: [DIGEST] });

const nodeDigest = z
  .object({
    node: z.string().meta({ description: 'The name of the node.' }),
    vector_count: count('The number of vectors at the sequence.').optional(),
    digest: digest.optional(),
    problem: z.string().optional().meta({
      description: 'Why the digest is missing, or does not cover all committed writes.',
    }),
  })
  .meta({
    id: 'NodeDigest',
    description: 'The digest of a collection on a node of the cluster.',
    examples: [{ node: 'sagitta-0', vector_count: 2, digest: DIGEST }],
  });

const FILES_EXAMPLE = {
  kind: 'log',
  name: 'catalogue',
  count: 12,
  byte_count: 8_000,
  problem: null,
} as const;

const verifiedFiles = z
  .object({
    kind: z.enum(['log', 'archive', 'snapshot', 'origin']).meta({
      description:
        '`log`: the records of a log; `archive`: its chunks among the shared files; `snapshot`: what new nodes start from; `origin`: what a clone had before its first write.',
    }),
    name: z.string().meta({ description: 'The name of the log or the log snapshot.' }),
    count: count('Records of a log, chunks of an archive, or files.'),
    byte_count: count('Their size in bytes.'),
    problem: z.string().nullable().meta({
      description: 'What is damaged; null if nothing is.',
    }),
  })
  .meta({
    id: 'VerifiedFiles',
    description: 'A log, or a group of shared files, of the cluster.',
    examples: [FILES_EXAMPLE],
  });

export const clusterSchemas = {
  digest: z
    .object({
      sequence: count('The sequence of the write up to which the collection was read.'),
      vector_count: count('The number of vectors at that sequence.'),
      digest,
      nodes: z.array(nodeDigest).optional().meta({
        description:
          'With `all_nodes`: the nodes of the cluster in the order of their names; empty outside a cluster.',
      }),
    })
    .meta({
      id: 'CollectionDigest',
      description: 'A digest of the content of a collection at a sequence.',
      examples: [{ sequence: 33, vector_count: 2, digest: DIGEST }],
    }),
  files: z
    .object({
      files: z.array(verifiedFiles).meta({
        description: 'Everything that was read; empty outside a cluster.',
      }),
    })
    .meta({
      id: 'ClusterFiles',
      description: 'The state of the logs and the shared files of the cluster.',
      examples: [{ files: [FILES_EXAMPLE] }],
    }),
  node,
  cluster: z
    .object({
      node: z.string().nullable().meta({
        description: 'The name of the node that replies; null outside a cluster.',
      }),
      leader: z.string().nullable().meta({
        description:
          'The name of the node that creates, changes and deletes collections, aliases and API keys, as far as this node knows; null if there is none.',
      }),
      is_writable: z.boolean().meta({
        description:
          'Whether a write through the replying node would succeed now, as `GET /readyz?for=write` says.',
      }),
      nodes: z.array(node).meta({
        description: 'The nodes in the order of their names; empty outside a cluster.',
      }),
      collections: z.array(collectionProblem).meta({
        description:
          'The first 100 collections with a problem that the replying node as a whole does not have.',
      }),
      log_servers: z.array(logServer).meta({
        description:
          'The NATS servers that store the log of the catalogue; empty if they are unknown.',
      }),
      durability: durability.nullable().meta({
        description: 'As determined by this node; null outside a cluster.',
      }),
    })
    .meta({
      id: 'Cluster',
      description: 'The cluster as seen by one of its nodes.',
      examples: [
        {
          node: 'sagitta-0',
          leader: 'sagitta-0',
          is_writable: true,
          nodes: [
            NODE_EXAMPLE,
            {
              ...NODE_EXAMPLE,
              name: 'sagitta-1',
              url: 'http://sagitta-1:8484',
              zone: 'b',
              drain: 'drained',
              collection_count: 0,
            },
          ],
          collections: [],
          log_servers: [LOG_SERVER_EXAMPLE],
          durability: {
            state: 'unverified',
            detail: 'http://nats-2:8222 could not be checked: connect ECONNREFUSED.',
          },
        },
      ],
    }),
};

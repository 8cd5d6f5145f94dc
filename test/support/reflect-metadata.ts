// The decorator metadata functions that @peculiar/x509 requires; they report that there is none. Must be imported
// before that package.

const none = () => undefined;
Object.assign(Reflect, { getMetadata: none, getOwnMetadata: none, defineMetadata: none });

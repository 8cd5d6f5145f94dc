// The functions for decorators' metadata that @peculiar/x509 requires, which return that there is
// none. Must be imported before that package.

const none = () => undefined;
Object.assign(Reflect, { getMetadata: none, getOwnMetadata: none, defineMetadata: none });

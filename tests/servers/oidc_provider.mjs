// A real authorization server, oidc-provider from npm, with its own pages to log in and to agree.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [home, port, seconds] = process.argv.slice(2);
const found = createRequire(`${home}/`).resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(found));
const issuer = `http://127.0.0.1:${port}`;
const resource = { scope: 'notes:read notes:write', accessTokenFormat: 'opaque', accessTokenTTL: Number(seconds) };
const key = JSON.parse(process.env.MACHINE_KEY || 'null');
const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [], scope: 'notes:read' };
// A document that somebody hosts. Only the way there is scripted.
const hosted = 'https://overspill.example/client.json';
const described = {
  client_id: hosted,
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};
const provider = new Provider(issuer, {
  clients: [
    { ...machine, client_id: 'resource', client_secret: 'of-the-resource' },
    { ...machine, client_id: 'machine', client_secret: 'of-the-machine' },
    ...(key ? [{ ...machine, client_id: 'signer', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key] } }] : []),
  ],
  scopes: ['openid', 'offline_access', 'notes:read', 'notes:write'],
  fetch: (url, options) => (String(url) === hosted ? Response.json(described) : globalThis.fetch(url, options)),
  features: {
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: () => true },
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: { enabled: true, getResourceServerInfo: () => resource, useGrantedResource: () => true },
  },
  rotateRefreshToken: true,
  pkce: { required: () => true },
  ttl: { ClientCredentials: Number(seconds) },
});
let count = 0;
provider.on('grant.success', (ctx) => { if (ctx.oidc.params.grant_type === 'refresh_token') count += 1; });
provider.use(async (ctx, next) => { if (ctx.path === '/count') { ctx.body = { refreshed: count }; } else { await next(); } });
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));

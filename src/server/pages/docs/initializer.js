// Shows the OpenAPI document of this service in the page, without Swagger's bar and with the list of schemas folded.

const { presets, plugins } = SwaggerUIBundle;

SwaggerUIBundle({
  dom_id: '#swagger-ui',
  // Relative to this script, so that it is right under any prefix that a proxy adds.
  url: new URL('../openapi.json', document.currentScript.src).href,
  layout: 'BaseLayout',
  presets: [presets.apis],
  plugins: [plugins.DownloadUrl],
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // Without this, the page would send the document's address to a validator on the internet.
  validatorUrl: null,
});

/**
 * `POST /stop` → 200 `{"stopping":true}`, then the process stops gracefully. From then on, `/ready` is 503; `/live`
 * stays 200 until the process ends. The body is ignored; the media type of a form is refused (415), because a page of
 * another site could send one.
 */
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { refuseForms } from './request-text.ts';

export const stop: AdminEndpoint = {
	path: '/stop',
	operationsByMethod: {
		POST: {
			summary: 'Stops the process gracefully.',
			answer: {
				description: 'The server is stopping.',
				type: 'application/json',
				schema: { type: 'object', properties: { stopping: { const: true } }, required: ['stopping'] },
			},
			errors: ['unsupported_media_type'],
			run: (x, cx) => {
				refuseForms(x);
				answerJson(x, 200, '{"stopping":true}');
				cx.stopAfter(x);
			},
		},
	},
};

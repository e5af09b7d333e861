/**
 * `POST /stop` → 200 `{"stopping":true}`; then the process stops gracefully. From that moment `/ready` is 503; `/live`
 * stays 200 until the process ends. No body is read; a form's media type is refused (415), because a page of another
 * site can send one unasked.
 */
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { refuseForms } from './request-text.ts';

export const stop: AdminEndpoint = {
	path: '/stop',
	methods: {
		POST: {
			summary: 'Stops the process gracefully.',
			answer: {
				description: 'The stop has begun.',
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

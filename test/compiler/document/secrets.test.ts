/** Secrets of a document: found, hidden, refused when hidden. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import { isSecretHeader, isSecretVariable, redact, refuseRedacted } from '../../../compiler/document/secrets.ts';

const DOCUMENT = {
	settings: { admin: { listen: '127.0.0.1:2019', token: 'sesame' } },
	sites: [
		{
			addresses: [':8080'],
			pipeline: [
				{
					handler: 'group',
					pipeline: [
						{
							handler: 'edit_headers',
							request: {
								set: [
									{ name: 'Authorization', value: 'Bearer x' },
									{ name: 'X-Plain', value: 'seen' },
								],
								add: [{ name: 'X-Api-Key', value: 'k' }],
							},
						},
					],
				},
			],
		},
	],
};

const secrets = suite('secrets');

secrets('a header is secret by its name', () => {
	for (const name of [
		'authorization',
		'Proxy-Authorization',
		'COOKIE',
		'Set-Cookie',
		'X-Api-Key',
		'my-token',
		'x-secret-y',
		'password',
	]) {
		assert.ok(isSecretHeader(name), name);
	}
	for (const name of ['Host', 'Accept', 'X-Key', 'Cookie-Policy']) assert.not(isSecretHeader(name), name);
});

secrets('a variable of FastCGI is secret by its name', () => {
	const names = 'DB_PASSWORD,API_TOKEN,APP_SECRET,API_KEY,AWS_ACCESS_KEY_ID,PRIVATE_KEY,APP_KEY,DB_PASS,PASSWD,';
	for (const name of `${names}SMTP_PWD,CREDENTIALS,smtp_auth,HTTP_AUTHORIZATION,SENTRY_DSN`.split(',')) {
		assert.ok(isSecretVariable(name), name);
		const env = [{ name, value: 'hidden' }];
		const step = { handler: 'proxy', upstreams: { to: ['127.0.0.1:9'], transport: { type: 'fastcgi', env } } };
		assert.not.match(JSON.stringify(redact({ sites: [{ addresses: [':1'], pipeline: [step] }] })), 'hidden');
	}
	for (const name of ['APP_ENV', 'PASSENGER', 'KEYBOARD', 'SERVER_NAME', 'AUTHOR', 'DOCUMENT_ROOT', 'MONKEY']) {
		assert.not(isSecretVariable(name), name);
	}
});

secrets('reading hides them and changes nothing', () => {
	const shown = JSON.stringify(redact(DOCUMENT));
	for (const secret of ['sesame', 'Bearer x', '"k"']) assert.not(shown.includes(secret), secret);
	assert.ok(shown.includes('seen'));
	assert.is(shown.split('[redacted]').length - 1, 3);
	assert.is(DOCUMENT.settings.admin.token, 'sesame');
});

secrets('none is so deep that it is shown', () => {
	const edit = { handler: 'edit_headers', response: { set: [{ name: 'Set-Cookie', value: 'hidden' }] } };
	const field = { type: 'header', name: 'Authorization', values: ['hidden'] };
	const retry_match = { type: 'all', of: [{ type: 'connect_error' }, { type: 'not', of: field }] };
	const places: readonly object[] = [
		{ handler: 'respond', when: field },
		{ handler: 'respond', when: { type: 'all', of: [{ type: 'path', patterns: ['/x'] }, field] } },
		{ handler: 'respond', when: { type: 'any', of: [{ type: 'not', of: { type: 'all', of: [field] } }] } },
		{ handler: 'first_match', branches: [{ when: { type: 'not', of: field }, pipeline: [edit] }] },
		{ handler: 'proxy', upstreams: { to: ['127.0.0.1:9'], retry_match } },
		{ handler: 'proxy', upstreams: { to: ['127.0.0.1:9'] }, responses: [{ pipeline: [edit] }] },
		{ handler: 'group', pipeline: [{ handler: 'group', pipeline: [edit] }] },
	];
	for (const step of places) {
		const site = { addresses: [':1'], pipeline: [], errors: [{ pipeline: [step] }] };
		for (const document of [
			{ sites: [{ addresses: [':1'], pipeline: [step] }] },
			{ sites: [site] },
			{ routes: { one: [step] } },
		]) {
			const shown = JSON.stringify(redact(document));
			assert.match(shown, '[redacted]');
			assert.not.match(shown, 'hidden');
		}
	}
});

secrets('what was hidden is refused when it comes back', () => {
	const found: Diagnostic[] = [];
	refuseRedacted(redact(DOCUMENT), diagnostic => found.push(diagnostic));
	assert.equal(
		found.map(({ pointer }) => pointer),
		[
			'/settings/admin/token',
			'/sites/0/pipeline/0/pipeline/0/request/set/0/value',
			'/sites/0/pipeline/0/pipeline/0/request/add/0/value',
		],
	);
	refuseRedacted(DOCUMENT, diagnostic => assert.unreachable(diagnostic.message));
});

secrets.run();

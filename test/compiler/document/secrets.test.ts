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

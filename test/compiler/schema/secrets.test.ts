/** Secrets in a document: finding and redacting them, and refusing redacted values. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import { isSecretHeader, isSecretVariable } from '../../../compiler/document/secret-names.ts';
import { redactUrlSecrets } from '../../../compiler/document/secret-parts.ts';
import { redactSecrets, rejectRedactedSecrets, restoreSecrets } from '../../../compiler/schema/secrets.ts';

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

secrets('a header is secret if its name says so', () => {
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

secrets('a FastCGI variable is secret if its name says so', () => {
	const names = 'DB_PASSWORD,API_TOKEN,APP_SECRET,API_KEY,AWS_ACCESS_KEY_ID,PRIVATE_KEY,APP_KEY,DB_PASS,PASSWD,';
	for (const name of `${names}SMTP_PWD,CREDENTIALS,smtp_auth,HTTP_AUTHORIZATION,SENTRY_DSN`.split(',')) {
		assert.ok(isSecretVariable(name), name);
		const env = [{ name, value: 'hidden' }];
		const step = { handler: 'proxy', upstreams: { to: ['127.0.0.1:9'], transport: { type: 'fastcgi', env } } };
		assert.not.match(JSON.stringify(redactSecrets({ sites: [{ addresses: [':1'], pipeline: [step] }] })), 'hidden');
	}
	for (const name of ['APP_ENV', 'PASSENGER', 'KEYBOARD', 'SERVER_NAME', 'AUTHOR', 'DOCUMENT_ROOT', 'MONKEY']) {
		assert.not(isSecretVariable(name), name);
	}
});

secrets('redaction hides secrets and leaves the original unchanged', () => {
	const redactedText = JSON.stringify(redactSecrets(DOCUMENT));
	for (const secret of ['sesame', 'Bearer x', '"k"']) assert.not(redactedText.includes(secret), secret);
	assert.ok(redactedText.includes('seen'));
	assert.is(redactedText.split('[redacted]').length - 1, 3);
	assert.is(DOCUMENT.settings.admin.token, 'sesame');
});

secrets('deeply nested secrets are also redacted', () => {
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
			const redactedText = JSON.stringify(redactSecrets(document));
			assert.match(redactedText, '[redacted]');
			assert.not.match(redactedText, 'hidden');
		}
	}
});

/** A string in a step or matcher, and the string that is shown instead. If the two are equal, the string is not secret. */
type RedactionCase = readonly [text: string, shown: string];

/** Redacts a site with one step, restores its secrets, and checks that redacted values are refused. */
function verifyRedaction(step: object, text: string, shown: string): void {
	const document = { sites: [{ addresses: [':1'], pipeline: [step] }] };
	const json = JSON.stringify(document);
	const hidden = redactSecrets(document);
	const expected = json.split(JSON.stringify(text)).join(JSON.stringify(shown));
	assert.is(JSON.stringify(hidden), expected, text);
	const refused: Diagnostic[] = [];
	rejectRedactedSecrets(hidden, diagnostic => refused.push(diagnostic));
	assert.is(refused.length > 0, text !== shown, `${shown} must be refused if redacted`);
	assert.equal(restoreSecrets(hidden, document, []), document, `${shown} must be restored`);
	if (text === shown) return;
	const other = JSON.parse(expected.split(JSON.stringify(shown)).join(JSON.stringify(`${shown} `)));
	assert.equal(restoreSecrets(other, document, []), other, 'only redacted values are restored');
}

const matching = (when: object): object => ({ handler: 'respond', when });

secrets('a value compared with a credential is secret', () => {
	for (const [field, hidden] of [
		['Authorization', true],
		['cookie', true],
		['X-Api-Key', true],
		['Accept', false],
	] as const) {
		const shown = hidden ? '[redacted]' : 'abc';
		const source = `{http.request.header.${field}}`;
		verifyRedaction(matching({ type: 'header_regexp', field, pattern: 'abc' }), 'abc', shown);
		verifyRedaction(matching({ type: 'vars', variables: { [source]: ['abc'] } }), 'abc', shown);
		verifyRedaction(matching({ type: 'vars_regexp', variable: source, pattern: 'abc' }), 'abc', shown);
		for (const input of ['input', 'input_regexp']) {
			const mappings = [{ [input]: 'abc', outputs: ['x'] }];
			verifyRedaction({ handler: 'lookup', source: `-${source}`, destinations: ['y'], mappings }, 'abc', shown);
		}
	}
	for (const [name, hidden] of [
		['token', true],
		['access_token', true],
		['page', false],
	] as const) {
		const shown = hidden ? '[redacted]' : 'abc';
		verifyRedaction(matching({ type: 'query', parameters: { [name]: ['abc'] } }), 'abc', shown);
		verifyRedaction(matching({ type: 'vars', variables: { [name]: ['abc'] } }), 'abc', shown);
		verifyRedaction({ handler: 'set_variables', variables: { [name]: 'abc' } }, 'abc', shown);
		verifyRedaction({ handler: 'rewrite_target', query: { set: [{ name, value: 'abc' }] } }, 'abc', shown);
		verifyRedaction(
			{ handler: 'rewrite_target', query: { replace: [{ name, find: 'abc', replace: '' }] } },
			'abc',
			shown,
		);
		verifyRedaction({ handler: 'trace_request', attributes: { [name]: 'abc' } }, 'abc', shown);
		const mappings = [{ input: 'x', outputs: [null, 'abc'] }];
		verifyRedaction({ handler: 'lookup', source: '{host}', destinations: ['a', name], mappings }, 'abc', shown);
		verifyRedaction(
			{ handler: 'lookup', source: '{host}', destinations: [name], mappings: [], defaults: ['abc'] },
			'abc',
			shown,
		);
	}
	const match = { headers: [{ name: 'Set-Cookie', values: ['abc'] }] };
	verifyRedaction({ handler: 'intercept_response', rules: [{ match, pipeline: [] }] }, 'abc', '[redacted]');
});

// biome-ignore format: one expression per line
const EXPRESSIONS: readonly RedactionCase[] = [
	["{http.request.header.Authorization} == 'Bearer a'", "{http.request.header.Authorization} == '[redacted]'"],
	["'a' == {header.X-Api-Key} && path('/x')", "'[redacted]' == {header.X-Api-Key} && path('/x')"],
	['!({cookie.session}.startsWith("a"))', '!({cookie.session}.startsWith("[redacted]"))'],
	["path('/a') || ({query.token} in ['a', r'b\\'] || host('c'))", "path('/a') || ({query.token} in ['[redacted]', r'[redacted]'] || host('c'))"],
	["header({'Authorization': 'a', 'Accept': ''})", "header({'Authorization': '[redacted]', 'Accept': ''})"],
	["header({'Accept': 'a'})", "header({'Accept': 'a'})"],
	["header_regexp('X-Token', '^a$') ? path('/b') : host('c')", "header_regexp('X-Token', '[redacted]') ? path('/b') : host('c')"],
	["header_regexp('name', 'Cookie', \"a\\\"b\")", "header_regexp('name', 'Cookie', \"[redacted]\")"],
	["vars_regexp('{http.request.header.Authorization}', '''a'b''')", "vars_regexp('{http.request.header.Authorization}', '''[redacted]''')"],
	["query({'api_key': ['a', 'b']})", "query({'api_key': ['[redacted]', '[redacted]']})"],
	["vars({'{header.Authorization}': 'a'})", "vars({'{header.Authorization}': '[redacted]'})"],
	["{header.Authorization} == 'Bearer ' + \"a\" // 'c'", "{header.Authorization} == '[redacted]' + \"[redacted]\" // 'c'"],
	["cel.bind(h, {header.Authorization}, h == 'a')", "cel.bind(h, {header.Authorization}, h == '[redacted]')"],
	["{header.Authorization}.matches(b'''secret-token''')", "{header.Authorization}.matches(b'''[redacted]''')"],
	["{header.X-Api-Key} == '{env.KEY}'", "{header.X-Api-Key} == '{env.KEY}'"],
	["{header.Accept} == 'a' && {vars.tier} == 'gold'", "{header.Accept} == 'a' && {vars.tier} == 'gold'"],
	["{http.auth.user.id} == 'ann'", "{http.auth.user.id} == 'ann'"],
	["path('{header.Authorization}/x') && host('a')", "path('{header.Authorization}/x') && host('a')"],
];

secrets('only literals that expressions compare with a credential are redacted', () => {
	for (const [expression, shown] of EXPRESSIONS) {
		verifyRedaction(matching({ type: 'expression', expression }), expression, shown);
		const nested = { type: 'not', of: { type: 'all', of: [{ type: 'expression', expression }] } };
		verifyRedaction(matching(nested), expression, shown);
	}
	for (const expression of [
		`${'('.repeat(5000)}{header.Authorization} == 'hidden'${')'.repeat(5000)}`,
		`${'('.repeat(5000)}{header.Authorization} == 'hidden'`,
		"{cookie.a} == 'hidden",
		"{cookie.a} == '''hidden'",
		"{cookie.a} == 'hidden\\",
	]) {
		const step = matching({ type: 'expression', expression });
		assert.not.match(JSON.stringify(redactSecrets({ sites: [{ addresses: [':1'], pipeline: [step] }] })), 'hidden');
	}
});

// biome-ignore format: one URL per line
const URLS: readonly RedactionCase[] = [
	['https://ann:sesame@a.test/x?y=1#z', 'https://ann:[redacted]@a.test/x?y=1#z'],
	['https://sesame@a.test', 'https://[redacted]@a.test'],
	['https://a:b@c:d@e.test/', 'https://a:[redacted]@e.test/'],
	['http://a.test/@x?a=1&access_token=b&sig=c', 'http://a.test/@x?a=1&access_token=[redacted]&sig=[redacted]'],
	['http://{env.USER}:{env.PASS}@a.test/?token={env.TOKEN}', 'http://{env.USER}:{env.PASS}@a.test/?token={env.TOKEN}'],
	['http://a.test/b:c@d?page=2', 'http://a.test/b:c@d?page=2'],
];

secrets('credentials in URLs are redacted everywhere', () => {
	const transport = (value: string) => ({ type: 'fastcgi', env: [{ name: 'DATABASE_URL', value }] });
	for (const [url, shown] of URLS) {
		verifyRedaction({ handler: 'redirect', to: url }, url, shown);
		verifyRedaction({ handler: 'rewrite_target', to: url }, url, shown);
		verifyRedaction({ handler: 'proxy', rewrite: url }, url, shown);
		verifyRedaction({ handler: 'proxy', upstreams: { to: [url] } }, url, shown);
		verifyRedaction({ handler: 'proxy', upstreams: { to: ['a:1'], health: { uri: url } } }, url, shown);
		verifyRedaction({ handler: 'proxy', upstreams: { to: ['a:1'], transport: transport(url) } }, url, shown);
		verifyRedaction({ handler: 'edit_headers', response: { set: [{ name: 'Location', value: url }] } }, url, shown);
		verifyRedaction({ handler: 'set_variables', variables: { backend: url } }, url, shown);
		const dns = { provider: 'cloudflare', api_token: '{env.T}', endpoint: url };
		const document = {
			settings: { acme_ca: url, on_demand_tls: { ask: url } },
			sites: [
				{
					addresses: ['a.test'],
					tls: {
						managers: [{ url }],
						issuers: [{ issuer: 'acme', directory: url, test_directory: url, dns }],
						client_auth: { trust_pool: { source: 'combined', of: [{ source: 'http', endpoints: [url] }] } },
					},
					pipeline: [],
				},
			],
		};
		const json = JSON.stringify(document).replace('{env.T}', '[redacted]');
		assert.is(JSON.stringify(redactSecrets(document)), json.split(url).join(shown), url);
		assert.equal(restoreSecrets(redactSecrets(document), document, []), document);
	}
});

secrets('a message about a URL does not contain its credentials', () => {
	const message =
		'`https://ann:b@a.test/x` failed: a URL that includes credentials: https://ann:b@a.test/x?token=c&d=e.';
	assert.is(
		redactUrlSecrets(message),
		'`https://ann:[redacted]@a.test/x` failed: a URL that includes credentials: https://ann:[redacted]@a.test/x?token=[redacted]&d=e.',
	);
});

secrets('command arguments that look like credentials are redacted', () => {
	const show = (...command: string[]): readonly string[] => {
		const dns = { provider: 'exec', command };
		const document = { sites: [{ addresses: [':1'], tls: { issuers: [{ issuer: 'acme', dns }] }, pipeline: [] }] };
		const hidden = redactSecrets(document);
		assert.equal(restoreSecrets(hidden, document, []), document);
		return hidden.sites[0]!.tls.issuers[0]!.dns.command;
	};
	const hidden = '[redacted]';
	assert.equal(show('/hook', '--token=abc', 'API_KEY=abc'), ['/hook', `--token=${hidden}`, `API_KEY=${hidden}`]);
	assert.equal(show('/hook', '--api-key', 'abc', '-v'), ['/hook', '--api-key', hidden, '-v']);
	assert.equal(show('curl', '-H', 'Authorization: Bearer x'), ['curl', '-H', `Authorization: ${hidden}`]);
	assert.equal(show('curl', '-u', 'ann:b', '--user', 'ann'), ['curl', '-u', `ann:${hidden}`, '--user', 'ann']);
	assert.equal(show('curl', 'https://ann:b@a.test/?x=1'), ['curl', `https://ann:${hidden}@a.test/?x=1`]);
	assert.equal(show('hook', '5f4dcc3b5aa765d61d8327deb882cf99'), ['hook', hidden]);
	assert.equal(show('hook', 'ghp_abcdefghijklmnop', 'eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln'), ['hook', hidden, hidden]);
	const plain = [
		'/opt/hooks/a-very-long-script-name-2.sh',
		'--zone=a.test',
		'-v',
		'my-zone-of-2026-and-more',
		'present',
	];
	assert.equal(show(...plain), plain);
	const filled = ['hook', '--token', '{env.TOKEN}', '--key={env.KEY}'];
	assert.equal(show(...filled), filled);
	assert.equal(show('hook', hidden), ['hook', hidden]);
});

secrets('a redacted value is refused in a new document', () => {
	const diagnostics: Diagnostic[] = [];
	rejectRedactedSecrets(redactSecrets(DOCUMENT), diagnostic => diagnostics.push(diagnostic));
	assert.equal(
		diagnostics.map(({ pointer }) => pointer),
		[
			'/settings/admin/token',
			'/sites/0/pipeline/0/pipeline/0/request/set/0/value',
			'/sites/0/pipeline/0/pipeline/0/request/add/0/value',
		],
	);
	rejectRedactedSecrets(DOCUMENT, diagnostic => assert.unreachable(diagnostic.message));
});

secrets('the password and the keys of a cluster are redacted, and their redacted forms are refused', () => {
	const cluster = { address: '127.0.0.1:6379', user: 'svc', password: 'hunter2', keys: ['new', 'old'] };
	const document = { settings: { cluster } };
	const redacted = redactSecrets(document);
	assert.not.match(JSON.stringify(redacted), /hunter2|new|old/);
	assert.match(JSON.stringify(redacted), /"user":"svc"/);
	const found: string[] = [];
	rejectRedactedSecrets(redacted, ({ pointer }) => found.push(pointer!));
	assert.equal(found.sort(), ['/settings/cluster/keys/0', '/settings/cluster/keys/1', '/settings/cluster/password']);
});

secrets.run();

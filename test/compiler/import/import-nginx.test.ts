/**
 * `svc import` for any text: it never throws, finishes quickly, lists the lines that it can only keep as comments, and does not
 * let a value become configuration.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import { importNginx, type NginxImport } from '../../../compiler/import/nginx/import-nginx.ts';
import { ReadError, type Reader } from '../../../compiler/source/reader.ts';
import { SeededChance } from '../../fuzz/chance.ts';
import { ROOT } from '../../harness.ts';

/** Returns a reader of files in memory, which records the names of the files that are read. */
function readerOf(files: { readonly [name: string]: string }): Reader & { readonly read: string[] } {
	const readNames: string[] = [];
	const textOf = (name: string): string => {
		readNames.push(name);
		const text = files[name];
		if (text === undefined) throw new ReadError('ENOENT', name);
		return text;
	};
	return {
		read: readNames,
		readText: textOf,
		readBytes: name => Buffer.from(textOf(name)),
		list: folder =>
			Object.keys(files)
				.filter(name => path.dirname(name) === folder)
				.map(name => path.basename(name)),
		kind: name => (Object.hasOwn(files, name) ? 'file' : undefined),
		env: () => undefined,
		workingDirectory: '/etc',
	};
}

function imported(text: string, files: { readonly [name: string]: string } = {}): NginxImport {
	return importNginx({ text, name: 'nginx.conf', folder: '/etc/nginx' }, readerOf(files));
}

/** Compiles the result of an import, which must have no errors, and returns the document. */
function documentOf(text: string): { readonly sites: readonly object[] } {
	const { document, diagnostics } = compile(
		{ format: 'configfile', text, name: 'Configfile', path: '/etc/Configfile' },
		readerOf({}),
	);
	const errors = diagnostics.filter(({ severity }) => severity === 'error');
	assert.equal(
		errors.map(({ message }) => message),
		[],
		text,
	);
	return document as unknown as { sites: object[] };
}

const imports = suite('imports of any text');

imports('the status page of nginx becomes `metrics` for the same clients, and is reported', () => {
	const { text, kept } = imported(`server {
	listen 8080;
	root /srv;
	location = /basic_status {
		stub_status on;
		allow 127.0.0.1;
		deny all;
	}
}`);
	assert.equal(
		kept.map(({ directive, reason }) => [directive, reason]),
		[['stub_status on', 'answered by `metrics`: such numbers, but in the format of Prometheus']],
	);
	const location = text.split('\n').slice(text.split('\n').findIndex(line => line.includes('/basic_status')));
	assert.match(
		location.slice(0, 12).join('\n'),
		/127\.0\.0\.1[\s\S]*error 403[\s\S]*# nginx: stub_status on;[\s\S]*\n\t+metrics\n/,
	);
	assert.not.match(text, /error 502/);
	documentOf(text);
});

imports('changed configurations are imported or refused, without an exception', () => {
	const folders = ['fixtures/import-nginx', 'fixtures/import-nginx-sites'].flatMap(folder =>
		readdirSync(path.join(ROOT, folder)).map(name => path.join(ROOT, folder, name)),
	);
	const texts = folders.map(folder => readFileSync(path.join(folder, 'http.conf'), 'utf8'));
	const words = texts.flatMap(text => text.match(/\S+/g) ?? []);
	const chance = new SeededChance(20);
	for (let round = 0; round < 1500; round++) {
		const parts = chance.of(texts).split(/(\s+)/);
		for (let change = chance.below(6); change >= 0; change--) {
			const at = chance.below(Math.max(1, parts.length));
			const kind = chance.below(6);
			if (kind === 0) parts.splice(at, 1);
			else if (kind === 1) parts.splice(at, 0, ` ${chance.of(words)} `);
			else if (kind === 2) parts[at] = chance.of(words);
			else if (kind === 3)
				parts[at] = `${parts[at]}${chance.of(['$', '\\', '`', '"', "'", '{', '}', ';', '#', '\u0000', '${', '<<X'])}`;
			else if (kind === 4) parts.splice(at, 0, ...parts.slice(chance.below(parts.length)).slice(0, 9));
			else parts.length = Math.min(parts.length, Math.max(1, at));
		}
		const text = parts.join('').slice(0, 20_000);
		try {
			const { diagnostics, text: result } = imported(`http { ${text} }`);
			assert.ok(diagnostics.length > 0 || result !== '');
			for (const { span } of diagnostics) assert.ok(span);
		} catch (error) {
			throw new Error(`round ${round}: ${(error as Error).stack}\n${text}`, { cause: error });
		}
	}
});

imports('every directive is translated or kept', () => {
	const { kept, text } = imported(
		'http { strange 1; server { other { inner 2; } location / { third; return 204; } } } stream { server { listen 53; } }',
	);
	const names = kept.map(({ directive }) => directive);
	assert.equal(names.toSorted(), ['inner 2', 'listen 53', 'other', 'server', 'strange 1', 'stream', 'third']);
	for (const name of names) assert.ok(text.includes(name), name);
});

imports('copies are sent by `mirror` where a plain proxy of the unchanged URI sends them', () => {
	const mirrored = (lines: string, copies: string): { steps: object[]; kept: NginxImport['kept'] } => {
		const { text, kept } = imported(`http { server { listen 80; location / { ${lines} proxy_pass http://10.0.0.1:80; }
			location = /copy { internal; ${copies} } } }`);
		const steps: object[] = [];
		JSON.stringify(documentOf(text), (_, value) => {
			if (value?.handler === 'mirror') steps.push(value);
			return value;
		});
		return { steps, kept };
	};
	const pass = 'proxy_pass http://10.0.0.9:8080$request_uri;';
	const plain = {
		handler: 'mirror',
		upstreams: { to: ['10.0.0.9:8080'] },
		header_up: { set: [{ name: 'Host', value: '10.0.0.9:8080' }] },
		rewrite: '{http.request.orig_uri}',
	};
	assert.equal(mirrored('mirror /copy;', pass), { steps: [plain], kept: [] });
	const fields = 'proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-A "$uri";';
	const [bare] = mirrored('mirror /copy; mirror_request_body off;', pass + fields).steps as [object];
	assert.is((bare as { body: unknown }).body, false);
	assert.is(JSON.stringify(bare).includes('Content-Length'), false);
	const [large] = mirrored('mirror /copy; client_max_body_size 5m;', pass).steps as [{ max_body: number }];
	assert.is(large.max_body, 5 * 1024 * 1024);
	assert.equal(mirrored('mirror off;', pass).steps, []);
	for (const [copies, reason] of [
		['proxy_pass http://10.0.0.9:8080;', /\$request_uri/],
		['proxy_pass http://10.0.0.9:8080/fixed;', /\$request_uri/],
		['proxy_pass http://$arg_to$request_uri;', /\$request_uri/],
		[`rewrite ^ /x; ${pass}`, /`rewrite`/],
		['return 204;', /`return`/],
	] as const) {
		const { steps, kept } = mirrored('mirror /copy;', copies);
		assert.equal(steps, [], copies);
		assert.match(kept.find(({ directive }) => directive === 'mirror /copy')!.reason, reason);
	}
	const nowhere = mirrored('mirror /elsewhere; mirror_request_body off;', pass);
	assert.match(nowhere.kept.find(({ directive }) => directive === 'mirror /elsewhere')!.reason, /exactly this path/);
	assert.is(nowhere.kept.find(({ directive }) => directive === 'mirror_request_body off')?.reason, 'no copy is sent');
});

imports('the rate of responses is limited by `limit_rate` where it is a constant', () => {
	const limited = (outer: string, inner: string): { steps: object[]; reasons: { [directive: string]: string } } => {
		const { text, kept } = imported(
			`http { ${outer} server { listen 80; location / { ${inner} proxy_pass http://10.0.0.1:80; } } }`,
		);
		const steps: object[] = [];
		JSON.stringify(documentOf(text), (_, value) => {
			if (value?.handler === 'limit_rate') steps.push(value);
			return value;
		});
		return { steps, reasons: Object.fromEntries(kept.map(({ directive, reason }) => [directive, reason])) };
	};
	const step = (rate: number, after?: number) => ({ handler: 'limit_rate', rate, ...(after && { after }) });
	for (const [outer, inner, steps] of [
		['', 'limit_rate 100k;', [step(102_400)]],
		['', 'limit_rate 2m; limit_rate_after 500;', [step(2_097_152, 500)]],
		['limit_rate 50000;', '', [step(50_000)]],
		['limit_rate_after 1m;', 'limit_rate 2k;', [step(2048, 1_048_576)]],
		['', 'limit_rate 2k; limit_rate_after 0;', [step(2048)]],
		['', 'limit_rate 0;', []],
	] as const) {
		assert.equal(limited(outer, inner), { steps, reasons: {} }, outer + inner);
	}
	for (const [lines, directive, reason] of [
		['limit_rate $rate;', 'limit_rate $rate', /`map`/],
		['limit_rate 1k; limit_rate_after $size;', 'limit_rate 1k', /`map`/],
		['limit_rate 1023;', 'limit_rate 1023', /below 1 KiB/],
		['limit_rate fast;', 'limit_rate fast', /not a size/],
		['limit_rate 0; limit_rate_after 1m;', 'limit_rate_after 1m', /no rate/],
	] as const) {
		const { steps, reasons } = limited('', lines);
		assert.equal(steps, [], lines);
		assert.match(reasons[directive] ?? '', reason);
	}
});

imports('a value cannot become configuration', () => {
	const hostile = [
		'x` }\n:81 {\n',
		'a" }\n:81 {',
		'} :81 {',
		'{env.HOME}',
		'{$HOME}',
		'<<END\n} :81 {\nEND',
		'# x',
		'\\',
		'not',
		'{',
	];
	for (const value of hostile) {
		const written = `"${value.replace(/[\\"$]/g, '\\$&')}"`;
		for (const line of [
			`return 200 ${written};`,
			`add_header X-A ${written}; return 204;`,
			`strange ${written}; return 204;`,
			`if ($http_a = ${written}) { return 403; } return 204;`,
		]) {
			const { text, diagnostics } = imported(`http { server { listen 80; location / { ${line} } } }`);
			assert.equal(diagnostics, [], line);
			assert.is(documentOf(text).sites.length, 1, text);
		}
	}
});

imports('includes read only what is named, and end', () => {
	const looping = importNginx(
		{ text: 'include a.conf;', name: 'nginx.conf', folder: '/etc/nginx' },
		readerOf({ '/etc/nginx/a.conf': 'include a.conf;' }),
	);
	assert.equal(
		looping.diagnostics.map(({ code }) => code),
		['nginx/include-depth'],
	);
	const reader = readerOf({
		'/etc/nginx/sites/a.conf': 'server { return 204; }',
		'/etc/nginx/sites/b.txt': 'x',
		'/etc/passwd': 'x',
	});
	importNginx({ text: 'http { include sites/*.conf; }', name: 'nginx.conf', folder: '/etc/nginx' }, reader);
	assert.equal(reader.read, ['/etc/nginx/sites/a.conf']);
	const many = Object.fromEntries(Array.from({ length: 1100 }, (_, index) => [`/etc/nginx/many/${index}.conf`, '']));
	assert.equal(
		imported('include many/*.conf;', many).diagnostics.map(({ code }) => code),
		['nginx/include-count'],
	);
	const fork = imported('include a.conf; include a.conf;', { '/etc/nginx/a.conf': 'include a.conf; include a.conf;' });
	assert.ok(fork.diagnostics.length > 0);
});

imports('fastcgi_params may be missing, and is read if it is there', () => {
	const text = 'http { server { listen 80; location / { include fastcgi_params; fastcgi_pass 127.0.0.1:9000; } } }';
	const withoutFile = imported(text);
	assert.equal(withoutFile.diagnostics, []);
	assert.match(withoutFile.text, /transport fastcgi/);
	const changedFile = imported(text, { '/etc/nginx/fastcgi_params': 'fastcgi_param APP_MODE live;' });
	assert.match(changedFile.text, /env APP_MODE "?live"?/);
});

imports('access stays closed where rules cannot be translated', () => {
	const { text, kept } = imported('http { server { listen 80; location / { allow $x; deny all; root /srv; } } }');
	assert.match(text, /error 403/);
	assert.is(kept.length, 2);
});

imports.run();

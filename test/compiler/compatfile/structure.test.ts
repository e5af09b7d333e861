/**
 * The structure of the compatible language: a test for each statement of its documentation about braces, addresses,
 * imports and named routes.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileText, compileToDocument, DryRunServer, errors, warnings } from './page.ts';

interface Site {
	readonly addresses: readonly string[];
	readonly pipeline: readonly { readonly [field: string]: unknown }[];
}

const sitesOf = (text: string, files = {}): readonly Site[] => compileToDocument(text, files).sites as readonly Site[];

const grammar = suite('grammar');
grammar('a file with a single site needs no braces', () => {
	assert.equal(
		sitesOf('(a) {\n\trespond x\n}\na.example:8080\nimport a\nheader X y').map(({ addresses }) => addresses),
		[['http://a.example:8080'].map(() => 'a.example:8080')],
	);
});
grammar('an address alone is a site', () => {
	assert.is(sitesOf('http://localhost').length, 1);
});
grammar('the opening brace of a site may be on the next line', () => {
	assert.is(sitesOf(':80\n{\n\trespond x\n}').length, 1);
});
grammar('a } ends a site without braces, and more sites may follow', () => {
	assert.equal(
		sitesOf(':80\nrespond a\n}\n:81 {\n\trespond b\n}\n').map(({ addresses }) => addresses),
		[[':80'], [':81']],
	);
	assert.equal(
		sitesOf(':80\n}\n:81\nhandle {\n}\n} :82 {\n}\n').map(({ addresses }) => addresses),
		[[':80'], [':81'], [':82']],
	);
});
grammar('text after the closing } of a site starts the next one', () => {
	assert.equal(
		sitesOf(':80 {\n} :81 {\n}').map(({ addresses }) => addresses),
		[[':80'], [':81']],
	);
});

/** An invalid file, and the expected message. */
const ERRORS: readonly (readonly [statement: string, text: string, message: string])[] = [
	['a { that is not last', ':80 {\n\thandle { respond x\n\t}\n}\n', "Unexpected next token after '{' on same line"],
	[
		'a { on the next line',
		':80 {\n\thandle\n\t{\n\t}\n}\n',
		"Unexpected '{' on a new line; did you mean to place the '{' on the previous line?",
	],
	['{} at the end of a line', ':80 {\n\thandle {}\n}\n', "Unexpected '{}' at end of line"],
	['a stray } after words', ':80\nrespond x }\n', "Unexpected '}' because no matching opening brace"],
	['a stray } after a site with braces', ':80 {\n}\n}\n', "Unexpected '}' because no matching opening brace"],
	['a block that is not closed', ':80 {\n\thandle {\n\t}\n', 'unexpected EOF, at Compatfile:3'],
	[
		'an unclosed site',
		':80 {\n\n\trespond hi\n',
		"syntax error: unexpected token 'hi', expecting '}', at Compatfile:3 import chain: ['']",
	],
	[
		'an unclosed snippet',
		'(a) {\n\tabort\n',
		"syntax error: unexpected token 'abort', expecting '}', at Compatfile:2 import chain: ['']",
	],
	[
		'an unclosed quote that swallows the end of a site',
		':80 {\n\trespond "hi\n}\n',
		"syntax error: unexpected token 'hi\\n}\\n', expecting '}', at Compatfile:2 import chain: ['']",
	],
	[
		'an unclosed backtick that swallows the end of a block',
		':80 {\n\thandle {\n\t\trespond `hi\n\t}\n}\n',
		'unexpected EOF, at Compatfile:3',
	],
	[
		'an empty quoted word',
		':80 {\n\trespond hi "',
		"syntax error: unexpected token 'hi', expecting '}', at Compatfile:2 import chain: ['']",
	],
	[
		'a quote in the global options',
		'{\n\temail "a\n}\n:80 {\n}\n',
		"syntax error: unexpected token 'a\\n}\\n:80 {\\n}\\n', expecting '}', at Compatfile:2 import chain: ['']",
	],
	['a comma at the end', 'a.example,', 'unexpected EOF'],
	[
		'a snippet without braces',
		'(a)\n:80 {\n}\n',
		"syntax error: unexpected token ':80', expecting '{', at Compatfile:2 import chain: ['']",
	],
	[
		'a named route without braces',
		'&(a)\n:80 {\n}\n',
		"syntax error: unexpected token ':80', expecting '{', at Compatfile:2",
	],
	['too few arguments', ':80\nrespond\n', "wrong argument count or unexpected line ending after 'respond'"],
	['too many arguments', ':80\nrespond a b c\n', "wrong argument count or unexpected line ending after 'c'"],
	[
		'an import at the place of the global options',
		'import part',
		'global options block must appear before import directives; move the global options block to the top of the Compatfile',
	],
	['a place', ':80 {\n\trespond @x y\n}\n', ', at Compatfile:2'],
	[
		'a directive',
		':80\nrespond a 200 {\n\tbody b\n}\n',
		"parsing compatfile tokens for 'respond': body already specified",
	],
	[
		'a second site without braces',
		':80\nrespond x\n:81\n',
		'Compatfile:3: unrecognized directive: :81\nDid you mean to define a second site?',
	],
	[
		'an unknown directive in a block',
		':80 {\n\troute {\n\t\tnope\n\t}\n}\n',
		'unrecognized directive: nope - are you sure your Compatfile structure (nesting and braces) is correct?',
	],
	['an unknown sub-directive', ':80 {\n\tfile_server {\n\t\tnope\n\t}\n}\n', 'nope'],
	[
		'global options that are not first',
		':80 {\n}\n{\n\tdebug\n}\n',
		'server block without any key is global configuration, and if used, it must be first',
	],
	[
		'global options after a named route',
		'&(a) {\n}\n{\n\tdebug\n}\n',
		'server block without any key is global configuration, and if used, it must be first',
	],
	['an unknown option', '{\n\tnope\n}\n', 'Compatfile:2: unrecognized global option: nope'],
	[
		'an address with a brace',
		'a.com{\n}\n',
		"Site addresses cannot end with a curly brace: 'a.com{' - put a space between the token and the brace",
	],
	[
		'an address with a comma',
		'a.example,b.example {\n}\n',
		"Site addresses cannot contain a comma ',': 'a.example,b.example' - put a space after the comma to separate site addresses",
	],
	['a comma before the brace', 'a.example, {\n}\n', "Expected another address but had '{' - check for extra comma"],
	[
		'a matcher in place of an address',
		'@x {\n}\n',
		'request matchers may not be defined globally, they must be in a site block; found @x',
	],
	[
		'a directive in place of an address',
		'respond {\n}\n',
		"Compatfile:1: parsed 'respond' as a site address, but it is a known directive; directives must appear in a site block",
	],
	['wss', 'wss://a.example', 'the scheme wss:// is only supported in browsers; use https:// instead'],
	['ws', 'ws://a.example', 'the scheme ws:// is only supported in browsers; use http:// instead'],
	['another scheme, in lower case', 'FTP://a.example', 'unsupported URL scheme ftp://'],
	['a port that is not a number', 'a.example:x', "invalid port 'x'"],
	['a port below 0', ':-1', 'port -1 is out of range'],
	['a port above 65535', ':65536', 'port 65536 is out of range'],
	['the port before the scheme', 'ftp://a.example:65536', 'port 65536 is out of range'],
	['http on the HTTPS port', 'http://a.example:443', '[http://a.example:443] scheme and port violate convention'],
	['https on the HTTP port', 'https://a.example:80', '[https://a.example:80] scheme and port violate convention'],
	['one address in two sites', ':8080 {\n}\n:8080 {\n}\n', 'ambiguous site definition: :8080'],
	[
		'TLS on a plain listener',
		'http://a.example {\n\ttls internal\n}\n',
		'server listening on [:80] is HTTP, but attempts to configure TLS connection policies',
	],
	[
		'both schemes on one listener',
		'https://a.example:8443 {\n}\nhttp://b.example:8443 {\n}\n',
		'cannot natively multiplex HTTP and HTTPS: ',
	],
	['a snippet twice', '(a) {\n}\n(a) {\n}\n:80 {\n\timport a\n}\n', 'redeclaration of previously declared snippet a'],
	['a snippet before its definition', ':80 {\n\timport a\n}\n(a) {\n}\n', 'File to import not found: a'],
	['two wildcards', ':80\nimport */*.conf', 'Glob pattern may only contain one wildcard (*), but has others: */*.conf'],
	['two question marks', ':80\nimport a?b?', 'Glob pattern may only contain one wildcard (*), but has others: a?b?'],
	['a class', ':80\nimport [ab]', 'Glob pattern may only contain one wildcard (*), but has others: [ab]'],
	['an import of nothing', ':80\nimport', "wrong argument count or unexpected line ending after 'import'"],
	['an import of ""', ':80\nimport ""', 'Import requires a non-empty filepath'],
	['a file that is not there', ':80\nimport none.conf', 'File to import not found: none.conf'],
	['a folder', ':80\nimport sites', 'Could not import sites: is a directory'],
	['a file that imports itself', ':80\nimport self', 'a cycle of imports exists between'],
	[
		'an anonymous block',
		'(a) {\n\t{block}\n}\n:80 {\n\timport a {\n\t\t{\n\t\t}\n\t}\n}\n',
		'anonymous blocks are not supported',
	],
	['a named route twice', '&(a) {\n}\n&(a) {\n}\n:80\n', 'cannot have duplicate named_routes: a'],
	['an undefined named route', ':80\ninvoke a', "cannot invoke named route 'a', which was not defined"],
	[
		'a matcher of the site used in a named route',
		'&(a) {\n\trespond @m x\n}\n:80 {\n\t@m path /\n\tinvoke a\n}\n',
		'unrecognized matcher name: @m',
	],
];

const refused = suite('structure errors');
for (const [statement, text, message] of ERRORS) {
	refused(statement, () => {
		const messages = errors(compileText(text, { 'sites/a': 'x', self: 'import self\n', part: '(b)\nimport other\n' }));
		assert.ok(
			messages.some(one => one.includes(message)),
			`wants ${message}\ngot   ${messages.join('\n      ')}`,
		);
	});
}

/** A site's addresses, and where it is served: `scheme :port`. */
const ADDRESSES: readonly (readonly [address: string, listeners: readonly string[]])[] = [
	['example.com', ['https :443']],
	['localhost', ['https :443']],
	['127.0.0.1', ['https :443']],
	['[::1]', ['https :443']],
	[':8080', ['http :8080']],
	[':443', ['https :443']],
	['https://', ['https :443']],
	['http://example.com', ['http :80']],
	['http://*', ['http :80']],
	['*.example.com', ['https :443']],
	['*.*.tld', ['https :443']],
	['example.com:8443', ['https :8443']],
	['example.com:80', ['http :80']],
	['a.example, b.example', ['https :443']],
	['a.example b.example', ['https :443']],
	['a.example,\nb.example', ['https :443']],
	['a.example , b.example', ['https :443']],
	['EXAMPLE.com:8443', ['https :8443']],
	['http://a.example:8080 http://b.example:8081', ['http :8080', 'http :8081']],
];

const addresses = suite('addresses');
for (const [address, wanted] of ADDRESSES) {
	addresses(JSON.stringify(address), () => {
		const { plan, ...found } = compileText(`{\n\tauto_https disable_redirects\n}\n${address} {\n\trespond x\n}\n`);
		assert.ok(plan, errors({ plan, ...found }).join('\n'));
		assert.equal(
			plan!.listeners.map(({ scheme, host, port }) => `${scheme} ${host}:${port}`),
			wanted,
		);
	});
}
addresses('a path in an address is deprecated, and matches exactly', async () => {
	const text = 'http://a.example/path {\n\trespond yes\n}\nhttp://a.example {\n\trespond no\n}\n';
	assert.ok(warnings(compileText(text)).length > 0, 'a warning');
	const server = new DryRunServer(text);
	assert.is((await server.ask('http://a.example/path')).body, 'yes');
	assert.is((await server.ask('http://a.example/path/')).body, 'no');
});
addresses('hosts are converted to lower case, except placeholders', () => {
	assert.equal(sitesOf('http://EXAMPLE.com {\n}\n')[0]!.addresses, ['http://example.com']);
	const { document } = compileText('http://{env.Some_Host} {\n}\n', {}, 'compatfile', {
		Some_Host: 'x.example',
		some_host: 'y',
	});
	assert.equal(document!.sites![0]!.addresses, ['http://x.example']);
});
addresses('IPv6 literals are normalized', async () => {
	const server = new DryRunServer('http://[0:0::0:1]:8080 {\n\trespond yes\n}\n');
	assert.is((await server.ask('http://[::1]:8080/')).body, 'yes');
});

const servers = suite('sites of a listener');
servers('the most specific host comes first: exact, wildcard, catch-all; ties keep the file order', async () => {
	const hosts = [':80', 'http://*.example.com', 'http://a.example.com', 'http://*.b.example.com', 'http://*'];
	const server = new DryRunServer(hosts.map(host => `${host} {\n\trespond "${host}"\n}\n`).join(''));
	for (const [host, wanted] of [
		['a.example.com', 'http://a.example.com'],
		['x.example.com', 'http://*.example.com'],
		['x.b.example.com', 'http://*.b.example.com'],
		['x', 'http://*'],
		['x.other', ':80'],
		['A.Example.Com', 'http://a.example.com'],
	] as const) {
		assert.is((await server.ask(`http://${host}/`)).body, wanted, host);
	}
});
servers('a site with a host-less address matches every host', async () => {
	const server = new DryRunServer(':80, http://example.com {\n\trespond yes\n}\n');
	assert.is((await server.ask('http://other/')).body, 'yes');
});
servers('for equal hosts, the longer path comes first', async () => {
	const text = ['/a', '/a/b'].map(path => `http://x.example${path} {\n\trespond "path ${path}"\n}\n`).join('');
	const server = new DryRunServer(`http://x.example {\n\trespond rest\n}\n${text}`);
	for (const path of ['/a', '/a/b']) assert.is((await server.ask(`http://x.example${path}`)).body, `path ${path}`);
	assert.is((await server.ask('http://x.example/c')).body, 'rest');
});
servers('without a site, or if the site writes nothing, the response is an empty 200', async () => {
	const server = new DryRunServer('http://a.example {\n}\n');
	for (const host of ['a.example', 'b.example']) {
		const { status, body } = await server.ask(`http://${host}/`);
		assert.equal([status, body], [200, ''], host);
	}
});

const imports = suite('imports');
/** A snippet, a line that imports the snippet, and lines with the same meaning as the import. */
const EQUIVALENT_IMPORTS: readonly (readonly [statement: string, snippet: string, importing: string, same: string])[] =
	[
		['arguments inside of words and quotes', 'header X{args[0]} "a {args[1]}"', 'import s 1 2', 'header X1 "a 2"'],
		['a slice', 'log_name {args[1:]}', 'import s a b c', 'log_name b c'],
		['a slice to', 'log_name {args[:2]}', 'import s a b c', 'log_name a b'],
		['a slice from to', 'log_name {args[1:2]}', 'import s a b c', 'log_name b'],
		['all', 'log_name {args[:]}', 'import s a b c', 'log_name a b c'],
		['the old form', 'header X {args.1}', 'import s a b', 'header X b'],
		['braces lose their backslash', 'respond "\\{a\\}"', 'import s', 'respond "{a}"'],
		['a block', 'header {\n{block}\n}', 'import s {\nA b\nC d\n}', 'header {\nA b\nC d\n}'],
		['no block', 'header X y\n{block}', 'import s', 'header X y'],
		['a named block', 'header {\n{blocks.h}\n}', 'import s {\nh {\nA b\n}\n}', 'header {\nA b\n}'],
		['a named line', 'header {blocks.h}', 'import s {\nh A b\n}', 'header A b'],
		['a name with a dot', 'header {blocks.h.i}', 'import s {\nh.i A b\n}', 'header A b'],
		['a named block that is not there', 'header X y\n{blocks.none}', 'import s {\nh A b\n}', 'header X y'],
		['snippets import snippets', 'import t {args[0]}', 'import s 1', 'header T 1'],
	];
for (const [statement, snippet, importing, same] of EQUIVALENT_IMPORTS) {
	imports(statement, () => {
		const other = compileToDocument(`:80 {\n${same}\n}\n`);
		assert.equal(
			compileToDocument(`(t) {\nheader T {args[0]}\n}\n(s) {\n${snippet}\n}\n:80 {\n${importing}\n}\n`),
			other,
		);
	});
}
imports('a missing argument stays as written, with a warning', () => {
	const result = compileText('(s) {\n\trespond "{args[3]}"\n}\n:80 {\n\timport s a\n}\n');
	assert.ok(result.document && warnings(result).length > 0);
	assert.is((result.document!.sites![0] as unknown as Site).pipeline[0]!.body, '{args[3]}');
});
imports('snippets go before files of that name', () => {
	const files = { s: 'respond file' };
	assert.equal(
		compileToDocument('(s) {\n\trespond snippet\n}\n:80 {\n\timport s\n}\n', files),
		compileToDocument(':80 {\n\trespond snippet\n}\n'),
	);
});
imports('files of a glob in the order of their names, without those that begin with a dot', () => {
	const files = { 'p/b': 'header B 2', 'p/a': 'header A 1', 'p/.c': 'header C 3' };
	assert.equal(
		compileToDocument(':80 {\n\timport p/*\n}\n', files),
		compileToDocument(':80 {\n\theader A 1\n\theader B 2\n}\n'),
	);
});
imports('a path is relative to the file that imports', () => {
	const files = { 'd/one': 'import two', 'd/two': 'header A 1' };
	assert.equal(compileToDocument(':80 {\n\timport d/one\n}\n', files), compileToDocument(':80 {\n\theader A 1\n}\n'));
});
imports('a glob that matches nothing and a blank file are warnings', () => {
	for (const file of ['none/*', 'blank']) {
		const result = compileText(`:80 {\n\timport ${file}\n\trespond x\n}\n`, { blank: ' \n' });
		assert.ok(result.document, file);
		assert.ok(warnings(result).length > 0, file);
	}
});
imports('arguments in a definition that an imported file holds are those of the snippet', () => {
	const files = { f: '(s) {\n\theader X {args[0]}\n}\n' };
	assert.equal(
		compileToDocument('import f outer\n:80 {\n\timport s inner\n}\n', files),
		compileToDocument(':80 {\n\theader X inner\n}\n'),
	);
});
imports('an error in a passed block is reported where the block was written', () => {
	const { diagnostics } = compileText(
		'(s) {\n\theader {\n\t\t{block}\n\t}\n}\n:80 {\n\timport s {\n\t\tA b c d\n\t}\n}\n',
	);
	const [error] = diagnostics.filter(({ severity }) => severity === 'error');
	assert.is(error?.span?.source.position(error.span.start).line, 8);
});

for (const one of [grammar, refused, addresses, servers, imports]) one.run();

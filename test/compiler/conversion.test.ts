/** Conversion of Caddyfiles to Configfiles. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../compiler/compiler.ts';
import type { Document } from '../../compiler/document/document.ts';
import {
	type Conversion,
	convertBlock,
	convertibleBlock,
	convertToConfigfile,
} from '../../compiler/queries/conversion.ts';
import { parseSyntax } from '../../compiler/queries/text-syntax.ts';
import { printedForm } from '../../compiler/schema/printed-form.ts';
import type { Reader } from '../../compiler/source/reader.ts';
import { formatText } from '../../compiler/syntax/format.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { ROOT } from '../harness.ts';

const conversion = suite('conversion to a Configfile');

const SCATTERED_REWRITES =
	'Of the `rewrite` lines in this block, only the first that matches runs. A Configfile can express this only for lines that are next to each other. Move the directives between them elsewhere.';

function convert(text: string): Conversion {
	return convertToConfigfile({ text, name: 'Caddyfile', path: '/Caddyfile' }, diskReader('/'));
}

function textOf(converted: Conversion): string {
	assert.ok('text' in converted, JSON.stringify(converted));
	return converted.text;
}

/** Prints a document without the capture names of expressions that have no captures. */
function printDocument(document: Document): string {
	const drop = (_: string, value: { type?: string; expression?: string; name?: string }) =>
		value?.type === 'expression' && !/_regexp\(/.test(value.expression ?? '') ? { ...value, name: undefined } : value;
	return JSON.stringify(printedForm(document), drop);
}

conversion('writes directives in the order in which they run, with their comments', () => {
	const text = `{
	order redir after respond
}
http://a.test {
	file_server
	# The header
	header X y # beside
	handle /a {
		respond a
		header Y z
	}
	redir /b /c
	respond /d d
}
`;
	const converted = textOf(convert(text));
	const words = [...converted.matchAll(/^\t(\w+)/gm)].map(([, word]) => word);
	assert.equal(words, ['header', 'handle', 'respond', 'redir', 'file_server']);
	assert.match(converted, '\t# The header\n\theader X y # beside\n');
	assert.match(converted, '\t\theader Y z\n\t\trespond a\n');
	assert.is(converted.includes('order'), false);
	assert.is(formatText(converted), converted);
});

conversion('writes current names, expressions in quotes, and arguments of snippets in their new form', () => {
	const converted = textOf(
		convert(`(greet) {
	respond {args.0}
}
http://a.test {
	@get expression method('GET') && path('/x*')
	respond @get got
	import greet hi
}
`),
	);
	assert.match(converted, "@get expression `method('GET') && path('/x*')`");
	assert.match(converted, 'respond {args[0]}');
});

conversion('writes directives that Caddy joins, because their matchers are equal, as one route', () => {
	const converted = textOf(
		convert(`http://a.test {
	# The header
	header /api/* X y # beside
	reverse_proxy /api/* 10.0.0.1:80 {
		header_up Y z
	}
	uri /api/* strip_prefix /api
	file_server
}
`),
	);
	const route = `	route /api/* {
		# The header
		header X y # beside
		uri strip_prefix /api
		reverse_proxy 10.0.0.1:80 {
			header_up Y z
		}
	}
	file_server
`;
	assert.ok(converted.includes(route), converted);
});

conversion('names what means something else in a Configfile', () => {
	const converted = textOf(
		convert(`http://a.test {
	@index file {
		try_files {path} index.php
		try_policy first_exist_fallback
	}
	redir @index https://{host}/\\{host}{uri}
	header X {http.request.host}
	php_fastcgi /a/* 10.0.0.1:9000
	php_fastcgi 10.0.0.1:9000 {
		env A b
	}
}
`),
	);
	assert.match(converted, 'redir @index https://{sent_host}/\\{host}{uri}\n');
	assert.match(converted, 'header X {sent_host}\n');
	assert.match(converted, '\t\ttry_policy first_exist_last_any\n\t}\n\tredir @index');
	assert.match(converted, 'php_fastcgi /a/* 10.0.0.1:9000 {\n\t\ttry_policy first_exist_last_any\n\t}\n');
	assert.match(converted, '\t\tenv A b\n\t\ttry_policy first_exist_last_any\n\t}\n');
});

conversion('names the files that a trust pool consists of in its current form', () => {
	const file = path.join(ROOT, 'fixtures/adapt/storage-and-internal-authorities/root.crt');
	const converted = textOf(
		convert(
			`http://a.test {\n\treverse_proxy https://b.test {\n\t\ttransport http {\n\t\t\ttls_trusted_ca_certs ${file}\n\t\t}\n\t}\n}\n`,
		),
	);
	assert.match(converted, `\t\t\ttls_trust_pool file ${file}\n`);
});

conversion('sorts the directives of a site without braces, and keeps alternatives without steps in their place', () => {
	const converted = textOf(
		convert('http://a.test\n\nfile_server\nhandle /a* {\n\trespond a\n}\nhandle {\n}\nheader X y\n'),
	);
	const words = [...converted.matchAll(/^(\w+)(?: .*)?$/gm)].map(([, word]) => word);
	assert.equal(words, ['header', 'handle', 'handle', 'file_server']);
	assert.match(converted, /handle \/a\* \{[\s\S]*handle \{/);
});

conversion('says that relative paths are relative to something else', () => {
	const { problem } = convert('http://a.test {\n\troot * public\n\tfile_server {\n\t\troot more\n\t}\n}\n') as {
		problem: string;
	};
	assert.is(
		problem,
		'In a Caddyfile, relative paths begin at the working directory of the server; in a Configfile, at the folder of the file. Write absolute paths for `public` and `more`.',
	);
});

conversion('says what prevents a conversion, and where', () => {
	const text = 'http://a.test {\n\troute {\n\t\trewrite /a /b\n\t\theader X y\n\t\trewrite /b /c\n\t}\n}\n';
	assert.equal(convert(text), { problem: SCATTERED_REWRITES, offset: text.indexOf('rewrite /a') });
	const imports = '(b) {\n\troot /b/* /b\n}\nhttp://a.test {\n\timport b\n\troot * /a\n}\n';
	assert.equal(convert(imports), {
		problem:
			'Of several lines here, only the first that matches runs. Some of them are imported, so that they cannot become one `when … else …`. Write all of them in the same block, without `import`.',
		offset: imports.indexOf('root /b'),
	});
	const wrong = convert('http://a.test {\n\tnothing\n}\n');
	assert.equal(wrong, { problem: 'The Caddyfile has errors. Correct them first.' });
	const mistakes = 'http://a.test {\n\tfile_server\n\trespond "{no.such}" 404\n\theader /x X {http.request.hots}\n}\n';
	assert.equal(convert(mistakes), {
		problem: 'A Configfile does not accept it: `{no.such}` is not a placeholder. Write `\\{` for a literal brace.',
		offset: mistakes.indexOf('respond'),
		furtherProblems: [
			{
				problem:
					'A Configfile does not accept it: `{http.request.hots}` is not a placeholder. Did you mean `{http.request.host}`? Write `\\{` for a literal brace.',
				offset: mistakes.indexOf('header'),
			},
		],
	});
});

const BLOCKS = `# The options
{
	order redir after respond
	email ops@a.test # for certificates
}

# What all sites have
(common) {
	encode gzip
	import more {args.0}
	request_header X {args.0}
} # end of common

(more) {
	header Z {args.0}
}

(unused) {
	redir /a /b
}

&(app) {
	respond app
	header Y z
}

# One site
http://a.test, http://www.a.test {
	import common 1
	invoke app
}

http://b.test {
	redir /a /b
	no_such_directive
}

http://c.test {
	respond c
	root * /c
}
`;

function convertAt(text: string, place: string, files: { readonly [path: string]: string } = {}): Conversion {
	const disk = diskReader('/');
	const reader: Reader = {
		...disk,
		readText: name => files[name] ?? disk.readText(name),
		kind: name => (files[name] === undefined ? disk.kind(name) : 'file'),
	};
	return convertBlock({ text, name: 'Caddyfile', path: '/Caddyfile' }, text.indexOf(place), reader);
}

conversion('converts a site with the options and everything that it uses, whatever is wrong elsewhere', () => {
	const text = textOf(convertAt(BLOCKS, 'invoke app'));
	assert.is(
		text,
		`# The options
{
	email ops@a.test # for certificates
}

# What all sites have
(common) {
	import more {args[0]}
	request_header X {args[0]}
	encode gzip
}

# end of common

(more) {
	header Z {args[0]}
}

&(app) {
	header Y z
	respond app
}

# One site
http://a.test, http://www.a.test {
	import common 1
	invoke app
}
`,
	);
	const reader = diskReader('/');
	const alone = BLOCKS.slice(0, BLOCKS.indexOf('http://b.test'));
	const before = compile({ format: 'compatfile', text: alone, name: 'Caddyfile' }, reader).document;
	const after = compile({ format: 'configfile', text, name: 'Configfile' }, reader).document;
	assert.is(printDocument(after!), printDocument(before!));
	assert.is(textOf(convertAt(BLOCKS, 'respond c')).includes('root /c\n\trespond c\n'), true);
});

conversion('converts a snippet or a named route in the order of the sites that use it', () => {
	const snippet = textOf(convertAt(BLOCKS, 'encode'));
	assert.match(snippet, /^# What all sites have\n\(common\) \{\n\timport more/);
	assert.match(snippet, '(more) {');
	assert.is(/test|email|app/.test(snippet), false);
	assert.is(textOf(convertAt(BLOCKS, 'respond app')), '&(app) {\n\theader Y z\n\trespond app\n}\n');
	assert.equal(convertAt(BLOCKS, '(unused)'), {
		problem: 'No site in this file uses the snippet `unused`, so the order in which its directives run is not known.',
	});
});

conversion('reads what a site imports from other files, and no other sites', () => {
	const text = 'import common.conf\nimport sites.conf\n\nhttp://a.test {\n\tfile_server\n\timport NAME\n}\n';
	const files = { '/common.conf': '(there) {\n\theader X y\n}\n', '/sites.conf': 'http://b.test {\n}\n' };
	const there = textOf(convertAt(text.replace('NAME', 'there'), 'file_server', files));
	assert.match(there, /^import common\.conf\nimport sites\.conf\n\nhttp:\/\/a\.test \{\n\timport there\n\tfile_server/);
	const line = textOf(convertAt(text.replace('import NAME', 'header X y'), 'file_server', files));
	assert.match(line, /^http:/);
});

conversion('says what prevents the conversion of a block, and where in the whole file', () => {
	assert.equal(convertAt(BLOCKS, 'no_such_directive'), {
		problem: 'By itself, the site `http://b.test` has errors. Correct them first.',
	});
	const none = { problem: 'There is no site, snippet or named route to convert by itself here.' };
	assert.equal(convertAt(BLOCKS, 'order'), none);
	assert.equal(convertAt(BLOCKS, '# One'), none);
	assert.equal(convertAt('http://a.test {\n\trespond hi\n}\n', 'respond'), none);
	const scattered = `${BLOCKS}\nhttp://d.test {\n\troute {\n\t\trewrite /a /b\n\t\theader X y\n\t\trewrite /b /c\n\t}\n}\n`;
	assert.equal(convertAt(scattered, 'rewrite /a'), {
		problem: SCATTERED_REWRITES,
		offset: scattered.indexOf('rewrite /a'),
	});
});

conversion('converts every site of every fixture to the document that it has by itself', () => {
	const files = globSync('fixtures/{adapt,serve,lint}/**/{Compatfile,Caddyfile}', { cwd: ROOT }).toSorted();
	let converted = 0;
	for (const file of files) {
		const filePath = path.join(ROOT, file);
		const input = { text: readFileSync(filePath, 'utf8'), name: path.basename(filePath), path: filePath };
		const syntax = parseSyntax(filePath, input.text, 'compatfile');
		for (const line of syntax.lines) {
			const at = line.words[0]?.span.start;
			if (at === undefined || !convertibleBlock(syntax, at)) continue;
			const result = convertBlock(input, at, diskReader(path.dirname(filePath)));
			if ('problem' in result)
				assert.match(
					result.problem,
					/^(By itself|No site|A Configfile|Of the|Of several lines|The imported file|In a Caddyfile)/,
					file,
				);
			else {
				converted++;
				assert.is(formatText(result.text), result.text, file);
			}
		}
	}
	assert.ok(converted > 20, `${converted}`);
});

conversion('keeps the document of every fixture that it converts', () => {
	const files = globSync('fixtures/{adapt,serve,lint}/**/{Compatfile,Caddyfile}', { cwd: ROOT }).toSorted();
	let converted = 0;
	for (const file of files) {
		const filePath = path.join(ROOT, file);
		const input = { text: readFileSync(filePath, 'utf8'), name: path.basename(filePath), path: filePath };
		const reader = diskReader(path.dirname(filePath), { PORT: '8080', UPSTREAM: '127.0.0.1:9' });
		const result = convertToConfigfile(input, reader);
		if ('problem' in result) {
			assert.match(
				result.problem,
				/^(The Caddyfile has errors|A Configfile (does not accept|would mean)|Of the|Of several lines|The imported file|In a Caddyfile)/,
				file,
			);
			continue;
		}
		converted++;
		const before = compile({ ...input, format: 'compatfile' }, reader).document;
		const after = compile({ ...input, text: result.text, format: 'configfile' }, reader).document;
		assert.is(printDocument(after!), printDocument(before!), file);
	}
	assert.ok(converted * 5 > files.length * 3, `${converted} of ${files.length}`);
});

conversion.run();

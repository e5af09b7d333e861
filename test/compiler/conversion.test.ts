/** Conversion of Caddyfiles to Configfiles. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../compiler/compiler.ts';
import type { Document } from '../../compiler/document/document.ts';
import { type Conversion, convertedToConfigfile } from '../../compiler/queries/conversion.ts';
import { printedForm } from '../../compiler/schema/printed-form.ts';
import { formatText } from '../../compiler/syntax/format.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { ROOT } from '../harness.ts';

const conversion = suite('conversion to a Configfile');

function convert(text: string): Conversion {
	return convertedToConfigfile({ text, name: 'Caddyfile', path: '/Caddyfile' }, diskReader('/'));
}

function textOf(converted: Conversion): string {
	assert.ok('text' in converted, JSON.stringify(converted));
	return converted.text;
}

/** Prints a document without the capture names of expressions that have no captures. */
function printed(document: Document): string {
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

conversion('says what stands in the way, and where', () => {
	assert.equal(convert('http://a.test {\n\troot * /a\n\troot /b/* /b\n}\n'), {
		problem: 'A Configfile would mean something else: `/sites/0/pipeline/0/exclusive` of the document differs.',
		at: 28,
	});
	const wrong = convert('http://a.test {\n\tnothing\n}\n');
	assert.equal(wrong, { problem: 'The Caddyfile has errors. Correct them first.' });
	const placeholder = convert('http://a.test {\n\trespond {no.such}\n}\n');
	assert.match((placeholder as { problem: string }).problem, 'A Configfile does not accept it: `{no.such}`');
});

conversion('keeps the document of every fixture that it converts', () => {
	const files = globSync('fixtures/{adapt,serve,lint}/**/{Compatfile,Caddyfile}', { cwd: ROOT }).toSorted();
	let converted = 0;
	for (const file of files) {
		const whole = path.join(ROOT, file);
		const input = { text: readFileSync(whole, 'utf8'), name: path.basename(whole), path: whole };
		const reader = diskReader(path.dirname(whole));
		const result = convertedToConfigfile(input, reader);
		if ('problem' in result) {
			assert.match(result.problem, /^(The Caddyfile has errors|A Configfile (does not accept|would mean))/, file);
			continue;
		}
		converted++;
		const before = compile({ ...input, format: 'compatfile' }, reader).document;
		const after = compile({ ...input, text: result.text, format: 'configfile' }, reader).document;
		assert.is(printed(after!), printed(before!), file);
	}
	assert.ok(converted * 5 > files.length * 2, `${converted} of ${files.length}`);
});

conversion.run();

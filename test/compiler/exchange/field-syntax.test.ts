/** The characters allowed in field names and values. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { encodeFieldText, fieldValueKind, isFieldValue, isToken } from '../../../compiler/exchange/field-syntax.ts';

const syntax = suite('field syntax');

syntax('field names are tokens', () => {
	for (const text of ['a', 'Content-Type', "!#$%&'*+-.^_`|~09azAZ"]) assert.ok(isToken(text), text);
	for (let code = 0; code < 0x180; code++) {
		const char = String.fromCharCode(code);
		assert.is(isToken(`a${char}`), /^[!#$%&'*+\-.^_`|~0-9A-Za-z]$/.test(char), `U+${code.toString(16)}`);
	}
	assert.not.ok(isToken(''));
	assert.not.ok(isToken('\u0141'), 'its low byte is a letter');
});

syntax('values contain no control character except HTAB, and wide text is detected', () => {
	for (let code = 0; code < 0x180; code++) {
		const kind = code > 0xff ? 'text' : (code < 0x20 && code !== 9) || code === 0x7f ? 'invalid' : 'bytes';
		assert.is(fieldValueKind(`a${String.fromCharCode(code)}b`), kind, `U+${code.toString(16)}`);
	}
	assert.is(fieldValueKind('\u010a\n'), 'invalid');
	assert.ok(isFieldValue(''));
	assert.ok(isFieldValue('→'));
	assert.not.ok(isFieldValue('a\r\nb'));
});

syntax('text is converted to the bytes of its UTF-8 form', () => {
	assert.is(encodeFieldText('plain'), 'plain');
	assert.is(encodeFieldText('é→'), '\xc3\xa9\xe2\x86\x92');
	assert.is(fieldValueKind(encodeFieldText('\u010d\u010a')), 'bytes');
});
syntax.run();

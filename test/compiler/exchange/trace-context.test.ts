/** W3C Trace Context: which fields are valid, and which are forwarded. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import {
	parseTraceParent,
	parseTraceState,
	readTraceContext,
	writeTraceContext,
} from '../../../compiler/exchange/trace-context.ts';

const traceContext = suite('trace context');

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

traceContext('current and future versions are accepted', () => {
	assert.equal(parseTraceParent(`00-${TRACE}-${SPAN}-01`), { traceId: TRACE, parentId: SPAN, flags: 1 });
	assert.is(parseTraceParent(`00-${TRACE}-${SPAN}-00`)?.flags, 0);
	// Flags that are not defined by the specification are not forwarded.
	assert.is(parseTraceParent(`00-${TRACE}-${SPAN}-ff`)?.flags, 3);
	assert.is(parseTraceParent(`01-${TRACE}-${SPAN}-01`)?.flags, 1);
	assert.is(parseTraceParent(`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`)?.flags, 1);
});

traceContext('malformed fields are refused', () => {
	const refused = [
		'',
		`00-${TRACE}-${SPAN}`,
		`00-${TRACE}-${SPAN}-`,
		`00-${TRACE}-${SPAN}-1`,
		`00-${TRACE}-${SPAN}-01-`,
		`00-${TRACE}-${SPAN}-01-more`,
		`00-${TRACE}-${SPAN}-01 `,
		` 00-${TRACE}-${SPAN}-01`,
		`cc-${TRACE}-${SPAN}-01.more`,
		`ff-${TRACE}-${SPAN}-01`,
		`00-${TRACE.toUpperCase()}-${SPAN}-01`,
		`00-${TRACE}-${SPAN.replace('a', 'A')}-01`,
		`00-${'0'.repeat(32)}-${SPAN}-01`,
		`00-${TRACE}-${'0'.repeat(16)}-01`,
		`00-${TRACE}0-${SPAN}-01`,
		`00_${TRACE}_${SPAN}_01`,
		`00-${TRACE}-${SPAN}-0g`,
		`00-${TRACE}-${SPAN}-01\n`,
	];
	for (const value of refused) assert.is(parseTraceParent(value), undefined, JSON.stringify(value));
});

traceContext('a state is forwarded as written, except for spaces and empty members', () => {
	assert.is(parseTraceState('rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'), 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE');
	assert.is(parseTraceState(' a=1\t,, \t0b@c-d_e*/f=x y!~ ,'), 'a=1,0b@c-d_e*/f=x y!~');
	assert.is(parseTraceState(Array.from({ length: 32 }, (_, i) => `k${i}=v`).join(','))?.split(',').length, 32);
	assert.is(parseTraceState(`${'k'.repeat(256)}=${'v'.repeat(256)}`)?.length, 513);
});

traceContext('an invalid state is dropped', () => {
	const refused = [
		'',
		' , ',
		'a',
		'a=',
		'=a',
		'a=b=c',
		'A=1',
		'a =1',
		'_a=1',
		'a=\u00e9',
		'a=1,a=2',
		'a=1;b=2 é',
		`${'k'.repeat(257)}=v`,
		`k=${'v'.repeat(257)}`,
		Array.from({ length: 33 }, (_, i) => `k${i}=v`).join(','),
	];
	for (const value of refused) assert.is(parseTraceState(value), undefined, JSON.stringify(value));
});

traceContext('a state without a parent is ignored, and so are repeated parents', () => {
	const headers = new HeaderList();
	headers.add('tracestate', 'a=1');
	assert.is(readTraceContext(headers), undefined);
	headers.add('Traceparent', `00-${TRACE}-${SPAN}-01`);
	headers.add('Tracestate', 'b=2');
	assert.equal(readTraceContext(headers), {
		parent: { traceId: TRACE, parentId: SPAN, flags: 1 },
		state: 'a=1,b=2',
	});
	headers.add('traceparent', `00-${TRACE}-${SPAN}-01`);
	assert.is(readTraceContext(headers), undefined);
	writeTraceContext(headers, TRACE, SPAN, 1, undefined);
	assert.equal([...headers], [['traceparent', `00-${TRACE}-${SPAN}-01`]]);
});

traceContext.run();

/**
 * Header fields with `_` or `.` in their names are dropped unless the configuration lists them. If it lists `X_Tenant`, the field
 * `X-Tenant` is dropped, because backends could confuse the two.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { send, serve } from './wire.ts';

const names = suite('expected names');
const expectedHeaders = { underscore: ['X_Tenant', 'custom_*', 'Both_.Name'], dot: ['Build.Id'] };

const CASES: readonly (readonly [what: string, fields: string, kept: string])[] = [
	['a listed name is kept', 'X_Tenant: a\r\n', 'X_Tenant'],
	['letter case does not matter', 'x_TENANT: a\r\n', 'x_TENANT'],
	['an unlisted name is dropped', 'X_Other: a\r\n', ''],
	['a listed prefix keeps names that start with it', 'Custom_a: 1\r\nCustom_b: 2\r\n', 'Custom_a Custom_b'],
	['names with dots have their own list', 'Build.Id: 1\r\nX.Tenant: 2\r\n', 'Build.Id'],
	['the plain spelling of a listed name is dropped', 'X-Tenant: evil\r\nX_Tenant: a\r\n', 'X_Tenant'],
	['also without the listed name', 'X-Tenant: evil\r\nBuild-Id: evil\r\nCustom-a: evil\r\n', ''],
	['a repeated listed field is dropped', 'X_Tenant: a\r\nX_Tenant: b\r\nX-Else: c\r\n', 'X-Else'],
	['a name with both characters needs an entry of its own', 'custom_a.b: 1\r\nboth_.name: 2\r\n', 'both_.name'],
];

names('fields are kept and dropped according to the lists', async () => {
	const server = await serve(
		x => {
			x.response.body = [...x.request.headers].map(([name]) => name).join(' ');
		},
		{ expectedHeaders },
	);
	for (const [what, fields, kept] of CASES) {
		const text = await send(server.port, `GET / HTTP/1.1\r\nHost: a\r\n${fields}Connection: close\r\n\r\n`);
		assert.is(text.split('\r\n\r\n')[1], `${kept} Connection`.trim(), what);
	}
	await server.stop();
});

names.run();

/** The unified diff that `svc fmt --diff` prints. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { firstDifferingLine, unifiedDifference } from '../../../compiler/syntax/format-difference.ts';

/** Applies a unified diff as strictly as `patch --fuzz=0`. Throws if a line that is kept or removed does not match. */
function applyDiff(before: string, diff: string): string {
	const lines = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
	const out: string[] = [];
	let at = 0;
	const rows = diff.split('\n');
	assert.equal(rows.slice(0, 2), ['--- a.conf', '+++ a.conf']);
	for (let row = 2; row < rows.length - 1; ) {
		const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$/.exec(rows[row]!);
		assert.ok(head, rows[row]);
		const [oldFrom, oldCount, newFrom, newCount] = head.slice(1).map(number => Number(number ?? 1)) as [
			number,
			number,
			number,
			number,
		];
		const start = oldCount === 0 ? oldFrom : oldFrom - 1;
		while (at < start) out.push(lines[at++]!);
		assert.is(out.length, newCount === 0 ? newFrom : newFrom - 1, 'the new place follows from the old one');
		const [oldBefore, newBefore] = [at, out.length];
		for (row++; row < rows.length - 1 && !rows[row]!.startsWith('@@'); row++) {
			const mark = rows[row]![0];
			const open = rows[row + 1] === '\\ No newline at end of file';
			const line = rows[row]!.slice(1) + (open ? '' : '\n');
			if (mark !== '+') assert.is(lines[at++], line);
			if (mark !== '-') out.push(line);
			if (open) row++;
		}
		assert.equal([at - oldBefore, out.length - newBefore], [oldCount, newCount], 'the counts are right');
	}
	while (at < lines.length) out.push(lines[at++]!);
	return out.join('');
}

const difference = suite('unifiedDifference');
difference('shows the lines around a change', () => {
	assert.is(
		unifiedDifference('1\n2\n3\n4\n5\n6\n7\n8\n9\n', '1\n2\n3\n4\nfive\n6\n7\n8\n9\n', 'a.conf'),
		'--- a.conf\n+++ a.conf\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n',
	);
	assert.is(unifiedDifference('a\n', 'a\n', 'a.conf'), '');
	assert.is(unifiedDifference('', 'a\n', 'a.conf'), '--- a.conf\n+++ a.conf\n@@ -0,0 +1 @@\n+a\n');
	assert.is(unifiedDifference('a\n', '', 'a.conf'), '--- a.conf\n+++ a.conf\n@@ -1 +0,0 @@\n-a\n');
	assert.is(
		unifiedDifference('a', 'a\n', 'a.conf'),
		'--- a.conf\n+++ a.conf\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n',
	);
	assert.is(
		unifiedDifference('a\r\n', 'a\n', 'a.conf'),
		'--- a.conf\n+++ a.conf\n@@ -1 +1 @@\n-a\r\n+a\n',
		'a carriage return is a part of its line',
	);
});
difference('applied to the one text gives the other, for any two texts', () => {
	let seed = 11;
	const random = (limit: number) => {
		seed = (seed * 48271) % 2147483647;
		return seed % limit;
	};
	const text = () => {
		const lines = Array.from({ length: random(40) }, () => 'abcde'[random(5)]).join('\n');
		return lines + (random(3) === 0 ? '' : '\n');
	};
	for (let round = 0; round < 600; round++) {
		const before = text();
		// The changes are mostly small, so that there are several hunks.
		const after = random(2) === 0 ? text() : before.replace(/c\n/g, () => (random(4) === 0 ? 'x\ny\n' : 'c\n'));
		const diff = unifiedDifference(before, after, 'a.conf');
		assert.is(before === after ? after : applyDiff(before, diff), after, JSON.stringify({ before, after, diff }));
	}
});
difference('keeps what is common in large texts without the memory of their product', () => {
	const before = Array.from({ length: 40_000 }, (_, index) => `line ${index}\n  same\n`).join('');
	const after = before.replaceAll('  same', '\tsame');
	const kept = unifiedDifference(before, after, 'a.conf')
		.split('\n')
		.filter(line => line.startsWith(' line')).length;
	assert.is(kept, 40_000);
});
difference.run();

const first = suite('firstDifference');
first('is the number of the line, CRLF aside', () => {
	assert.is(firstDifferingLine('a\nb\nc\n', 'a\nb\nd\n'), 3);
	assert.is(firstDifferingLine('a\r\nb\r\n', 'a\nb\n'), undefined);
	assert.is(firstDifferingLine('a', 'a\n'), 1);
	assert.is(firstDifferingLine('a\n\n\nb\n', 'a\n\nb\n'), 3);
});
first.run();

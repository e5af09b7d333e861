-- Drives Neovim's own client against `svc language-server`, which cli/editors/vim starts. Arguments are in the
-- environment: FOLDER and RESULT.
local folder = os.getenv('FOLDER')
local result = {}

local function write()
	local file = assert(io.open(os.getenv('RESULT'), 'w'))
	file:write(vim.json.encode(result))
	file:close()
end

local function wait(what, condition)
	if not vim.wait(30000, condition, 10) then
		result.failure = 'timed out waiting for ' .. what
		write()
		vim.cmd('cquit')
	end
end

local function lines(buffer)
	return vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, false)
end

local function codes()
	local found = {}
	for _, diagnostic in ipairs(vim.diagnostic.get(0)) do
		table.insert(found, diagnostic.code or diagnostic.user_data.lsp.code)
	end
	table.sort(found)
	return found
end

local function place(line, column)
	vim.api.nvim_win_set_cursor(0, { line, column })
	return vim.lsp.util.make_position_params(0, 'utf-16')
end

local function ask(method, params)
	for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 30000) or {}) do
		return answer.result
	end
end

vim.o.swapfile = false
vim.o.hidden = true
vim.cmd('edit ' .. folder .. '/Configfile')

result.filetype = vim.bo.filetype
result.colors = {}
for _, at in ipairs({ { 4, 2 }, { 4, 6 }, { 5, 3 } }) do
	table.insert(result.colors, vim.fn.synIDattr(vim.fn.synID(at[1], at[2], 1), 'name'))
end

wait('diagnostics', function()
	return #codes() > 0
end)
result.diagnostics = codes()

-- Applies the fix of `rspond`.
local at = place(5, 3)
local range = { start = at.position, ['end'] = at.position }
local actions = ask('textDocument/codeAction', { textDocument = at.textDocument, range = range, context = { diagnostics = {} } })
result.action = actions[1].title
vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
wait('the fix', function()
	return not vim.tbl_contains(codes(), 'directive/unknown')
end)
result.left = codes()

local items = ask('textDocument/completion', place(4, 6))
result.completions = {}
for _, item in ipairs(items.items or items) do
	table.insert(result.completions, item.label)
end

local hover = ask('textDocument/hover', place(5, 3))
result.hover = hover.contents.value

-- Jumps to the snippet in the other file.
local main = vim.api.nvim_get_current_buf()
place(4, 6)
vim.lsp.buf.definition()
wait('the jump', function()
	return vim.api.nvim_buf_get_name(0):match('common.conf$') ~= nil
end)
result.jump = { vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':t'), vim.api.nvim_win_get_cursor(0) }

vim.api.nvim_set_current_buf(main)
place(4, 6)
vim.lsp.buf.rename('renamed')
wait('the renaming', function()
	return lines(main)[4]:match('renamed') ~= nil
end)
local other = vim.fn.bufnr(folder .. '/common.conf')
result.renamed = { lines(main)[4], lines(other)[1] }

vim.lsp.buf.formatting_sync(nil, 30000)
result.formatted = lines(main)
write()
vim.cmd('qall!')

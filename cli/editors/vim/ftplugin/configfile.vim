" Settings for configurations of svc.
if exists('b:did_ftplugin')
	finish
endif
let b:did_ftplugin = 1

setlocal comments=:# commentstring=#\ %s
setlocal noexpandtab tabstop=4 shiftwidth=4 softtabstop=0
setlocal formatoptions-=t formatoptions+=croql
setlocal iskeyword+=-
" `:make` validates the file and fills the quickfix list.
let &l:makeprg = get(g:, 'svc_path', 'svc') . ' validate --lint --format unix %:S'
setlocal errorformat=%f:%l:%c:\ %trror:\ %m,%f:%l:%c:\ %tarning:\ %m,%f:%l:%c:\ %tnfo:\ %m,%-G%.%#
let b:undo_ftplugin = 'setlocal comments< commentstring< expandtab< tabstop< shiftwidth< softtabstop< formatoptions<'
	\ . ' iskeyword< makeprg< errorformat<'

if has('nvim') && get(g:, 'svc_language_server', 1)
	lua require('svc').start()
endif

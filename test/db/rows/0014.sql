update threads set name = 'renamed' where id = 'thr_01a2031c-7d6f-75f1-b215-2915967b9da7';

"""Direction numbers of Sobol sequences for dimensions up to 1111: those of S. Joe and F. Y. Kuo, "Constructing Sobol
sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30 (2008), pages 2635-2654, search criterion
D(6).

A dimension has a primitive polynomial over the field of two elements and as many odd numbers m_1, m_2, ... as the
polynomial's degree, m_i below 2^i. `TEXT` packs them bit by bit, lowest bits first: the inner coefficients of the
polynomial (the outer two are 1), then the bits of each m_i but the lowest (it is 1). Polynomials stand in the order of
their degrees, `COUNTS` of each; all of a degree are there, so that degree 13 ends at dimension 1111. The next degrees
would take forty times the room.
"""

COUNTS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630)  # of degree 1, 2, ...; the first dimension has no polynomial


def dimensions(count):
    """Polynomial and m_1, m_2, ... of the second dimension, the third, ... up to `count` of them.

    >>> from lucid.quasirandom._numbers import dimensions
    >>> [(bin(polynomial), numbers) for polynomial, numbers in dimensions(3)]
    [('0b11', [1]), ('0b111', [1, 3]), ('0b1011', [1, 3, 1])]
    """
    from base64 import b85decode

    packed, at = b85decode("".join(TEXT.split())), 0

    def take(bits):
        nonlocal at
        window = int.from_bytes(packed[at // 8 : at // 8 + 4], "little") >> at % 8
        at += bits
        return window & ((1 << bits) - 1)

    degrees = (degree for degree, of_degree in enumerate(COUNTS, 1) for _ in range(of_degree))
    for degree, _ in zip(degrees, range(count)):
        polynomial = 1 << degree | take(degree - 1) << 1 | 1
        yield polynomial, [take(i) << 1 | 1 for i in range(degree)]


TEXT = """
7ZHWEP)L-Vn@d0=<<*CAaKlx>xbehC*xXpA(g*LJnYitUhdl8^N?@83Q>>?`{Zp|?J+28Oel{ckyexI4$c{?u1)KU<N907bcvA}v+yme5rg_YtVndGn4W_U3
-#?fotzz;`Y1fhP^0lCr*uxJz$$~6_nMS5^oVXVt%N;I9&XMuGxi_dnJs2KFwsP3>he#UDqyD{GFIClq2$iGD`rfbxun8g%5Y9!gY7y~yX89Rtp^vu3!jgmM
wJ&^HYVb?*eM*ULH^`p*ow7s!*%(khGT&(hIE1S9`I1U*4ek^gMWI0hK~nY(u-|@FPz{s?Tk;#@KkqfjXInpK3Z(vLhsN!b@{nyTYJFR;2Z1rrtb97~d;pP{
PDRgGiovz-kMY>Fr>mHe3<Qp^geeI>3{Rct6xs-PI(6q|hplDdtdj$4to29HwbBaOR$}W<33=kV51FR{{+s8VSO>xYKoZ$|oL_Ye@!C!{HF(XvNL<3M;~TZ9
Ls>2sGVo63KXb^drf$$CQ*7*Wwgtx*-)s&1@AOm&OUKr~xrBO21ac8l{H<IAOXl|<nl~Y%vGUngT9D}u@Y+2x?leS*0Pc+{`#|}W3WWK8RL&F^F>MAHd@5ox
MR4Mo_?jc$c$4}uhXtSR%1-B*$tSRj2!FhD-wRrup^(YQQ3J-P{ws4PR7Fyr`&QeDm=5EiGd!#(ObyMl79WblZ0($ktoqEh1R%M!j^&|osiQCzuUp%7a%?J9
WvG%bV{Xf#ah%XfSk8qt<+x9<(+o8!Zxi}^1kLXIaOoi+{Qcyb%DD$qLeax}nIoYv1g9&w14)c^`swYo8y);P3qx?oyP#bAAaRm1{tdOUwAA{$7wC9Ag>}Fe
W5G|IHz8|#Ni>_3^@%fSU3eoU)Bs>%Mxf>0Sz51g3{_kEwpdY7`dItj%1^7`(2I2&&VawU<3rx%^wtMigGwZGTymZT?CEj(qa{m0zNED24^qpQHK`f|W{Ve_
vCfxw!><ytc~_JF*Ol)nt+yOgZ@ea78;t-YPn)SU&GgvU9QoU|LVHtZuSk5J-#&WfFSYT<CLA&5vjXgm@g7bHbryJIt<;@(V^qKovgKK7<g$P+#0--yGCM*5
K3scYZ!-oPA>p=WbF>U<hr{Ipn?W2trhG)VSHV4u6)iI!fewtwA`e)N^DHPKHNfYUdtG~CXD9rNdf!h)V8jMTzd!&BGloMM8XemiCgYxsV|)!XoIRD0ZIp0u
D5k%j``B9N(8rZKE$@5Ofi|<3g)y|%;}@YJ3)H%6$U$|KJH4ztk(q(eSa<b<B*03-Z3tXxN|bk5Vv{2Fom{e!N&8cNJux6&4eeqvi{jX-hNDG<A>|>~GOXJG
go<QtCo4MXzm>+hftZRrU@nuZxA8Z%UtN9@%E$vemcP`;Ay;|qH-f>j{@)NR7#@S~P{t*aO0MR<sVG6@eqznLMrJ7v9E+Pjn_A|EG5a`)Go@MZMGSVVE~tz=
>eBK=EI=^DM#J`r>fom4tt$c~mfouyl>8Y8sEHS)TBVfGOGq}Lh!R_&Kx<CGDJ~R64l!N)w5}bJ!cyE>UZ&45dA+eWi;8@0Vv<^!?@Fce6a&<coLw;d$&&)Y
czL-iRG{$%#VlA8DKg|c&7l^XQ!~iMi!xQPsZ{VW-I_cGRbl*NsUG7Uvtp}mppiz1Xhl(w`?0-BRtwj!#xU$|`WD@Uul$vTgs!L)@;2!>>|Km?zaKV{Y`k`B
7)`i*UVZgjquO_0KLTqtAQSv$F%f3p!x0Pp%16wP^Dw7R?30<9Y^m}$7ymO-8~+ws!4+r}r8@TMSKHE*WPz-TZ5ONwwp3Rn8VO#*nVEjm>=?=>qT4QinDoDG
^iRy_tLN+6KaaiQrb=nJo5gtUyTw#-i?TBE04n6<zyhG4fYd_DF=>!Wue@KbtBt5h`ouPF7f6<XVU+gvPEX!x$GPH9-q8d^ih3cVz5G`qkQdpIdv+Z##dZ3#
`MTNU;qo8u_LZZogE26b3Vha(?*H6)8mK}hxe(`}WpK={Oj0Er@u2ZAnd<cXX+=a#mx^_DJ&aHWO$hUPy&7YpEzJrBPB}7zbK%IG35B$<UKad_dJ);H@4tKx
c3SepQE-2#Jl`Z;g}^xYSj<WMsWC;g#zB@%j|dGy2-h#;Pug*afPZ7!FLLIQ_nXXQIXMr?>)oU|Y57s_47yTN<p(Fi41*OX^`$(E>DHf4l$JBkM8NKzY}K2d
S+LGPEl{<5RXQ7oqM`ht@=9+Vt!P3h;U$$#>J8}Lgb3xgG@+$xF9=}(YMYA~I92+7)aZmlb4Z1ts(?UHbp!StRxyg^Y6+AKv2qA9@l|CrZ{1g_+`ETu;hN39
ZIIjYNY+Iiu>(~H{cH$-MUZF=ky@oFz?mE*V7EkD8`>-_S8rR6*Ebc~*W~gF-2N+@xz}A|lugbw^|U(`k)h(qD}+}#`x~RydOYt2@FS6^YFgj=rdBtJp`F0=
BiOKJX?TYXkgbcmPmK_tENBtR^=v18zZ&QU{`yqx1AORE{esDO5)EPZa}Lk3JAQwV%SnA?K7~eh(hXtBC&UcLM-4xfJJnKiht*CmclT`3e#+Hx9yo%*WU%}6
{3R@y7CiIud8**J<{^9qw640&20wQ@X-#dGyz)fL)7Y3JZ`j!SsHKEluA5;_U5_yt50_a6&wfVM%mG6dyX_2ZDM<9(%$uA+qmq|3!nfJmF@c5Gu5gBP{Yh4S
8RO3QBtyP(A<U1>H1lrF=9^2sPRzZ9<6TGVZo>Qd+Saajb`i0Ci?%(1aPIOE#HTxO)j~{}e=K;UG3$s&K0oq`lyX3kI;Q25;ZqN=Q9sSEy>NL~B_XDl>C2{Y
DyUfhM7P3n&zRA^sWiGOSmR>;nJ`b_ecdDdR-)28w~wLx4<9?_B0@^~J5jE1Xv%OY@S^ij$IEo{oCZPMx#|m(3tjYJUswmZy<t^AAFQM0X?El}#m)rwI+Yj-
eJ4NA;3{6)Kj0|@MjiUOI@_Y{%x)Qk+q_+&M9}j-k5Er)Z7}M!D?Jj8l_oJpOuQs^A`u{2o&QtBj8kOi`q!VX!2!RDT6u=}4<qE{V1auYNRtCg3U@7Ni}|-_
p;<l?#<c3{_cDKx64@AC^W-5g1^t#Cm|LF^6Pp^Ayd$&|YHcJjI$(p05)U-yiofc*k+nJA%L=MQK|G=t3f~_{PqFh%Kz8<X0$@jQ%ZVVrOpLSaAuB&YR9IAA
fX@q*D{8=9<X2oWYJr9RgADRLTvfWVya-8CWgeg?c^H@CQ=c8$3y~bNKNCU_7PN^!WYj^@%G8g&wB?LHr}i=d#y8fVsm0?GNn$uuz%;nm`Z1Nn693=^4iLG*
wA7z2<}3!yF_W99S00^uaNoSAni*xN)3?{XTf1pe|A4UXeq9*XHwVH{Av0(3@wz7J8-nI`P7`lk-TFjQsiah}a^knRs7XVK#*V;!<Qa8Y845*#o8PLVFzpRf
K1NQGrzGqFc^&LMOQV%EG_|~BVxpZ)6Qz6^`xjY1@`p-OAM!Q1TW!WshX*7IeNm!Mm?}nc32g@;f1zY`DYvL4AFLKBuDX_I2IMspw$@dwG)krSLYlO@Kv)>C
{b6qLtXH%>i>z*K0~Z7v8hx;le#FaUWQ4xLw#STdAF51WGN3INB+)dMS&}3<pQ088DK$vGz<0d1N;JKOj*UwE3>}!Q;`*A$XOO@c-eBC)U#rG_V6Zcxlc(g{
Eb4swLUgH}8l^FbZ>#HWE@9^b_=Vys;;otytS|LDF>k%HnF>DgC}noD*BU_;PuyEr+xL|Ag@4!-iai0}PW(khzwJXuD<pq*hR?}t0@H<4o7y-{y?!VoaU|w1
x<k8pnkD*((ps~l(;~)2*}a5vU2CoM?)bjxOo%7(^j9N2Lky#fR4d@p<R@8*xiQ&ip`eVj6(X&7PdZta^Qt)+YCOA6^fFoSbX)*h@Wx^mQ|-<ig?dqm&FDGy
Zq#3ZSG-B2-X0H??$HW4M}elldU0F*Ip+&xFKgJYy4v&9Y;MnK96JBHp_1OLv(YTNK2-F1hUS#-$Tg0P5+CH$d%e7|NYjO64K3UESFMYBLi2WX6JF&%T1j|T
2DjudeueAx1KZ7?Y*_<(HRu9w+_541uCR^D8xbFu%C#nT!;<O7zo={X$C5i^?W(*OinrR#@iU@77`JPY%Zebqpd6-@`E+@+{yFzqC+qp{#2tFvEe~C(;H}#)
IS*%j&O5!obQyIqo-!Q^nEf*`toTu;Qv{P~Ue^DQTz9)*>Mg-(xpe4}C%ojryKM9XEu4u3b6oLH3`0X4a$ZCGrxVcY#ZTVV5Z>8P7??uJ??`2b?4)N4b(uq$
%axYYzX&n&g3abHFz~TM=4ZA_kv*7o%FZmP%@t$gEq;5RHJ$pGii9()9yAP(3(tYNB|wpW%3aWrXk2R})J~BK<OHDe&7d06^T;GC{XnT!8x0CM9@q-PrRzfu
xdqz*Dh7nTWY`o`ON%A~vEfl-NLM_cb5yve3#q7@MyJsXuUMcmx+1d>@Z##tEwJu)N7;+qCyt)hu$gjrlv8Qb2U;z!7B%w=%ofd_{K)-szC}R96IAG-+tDSj
D-<#nnwX6HsKf+_PpLVJh&OJ85HLIgMzZlKd<#UV6t(V6K297Ip423@SlqYdnz$dhUSrLCVS;&7EZlB8x)0S_gT$!8(6RU12rL0SkGo|ff9MWBfW#bP<_!R9
nwG`-I{l7RO~5hHg6zO~`Dxjr0SIsDG*vvqL$qHC)M7NLb_l9z{QNR7H-9(XdYJbb@!UWt(2m4(Rt1)|R0QO}YO?aUCuZ-r5d?p%1}cvB5C~6CK+2(e?~q6a
qC!eR`xjmThe5C?V|E1^26?lhbLm=fRTosF2s@|56m>AcULca#$n&XB#P0fq0r{yL)cQJ-fGJA``~D;z+<6`bT{;{@%RGJU>+t?v%6ULYLsf|w>S%M77y`Fi
t^F6qQ$$&>2m`6I-65}R!K(-*6h@Py<goewc8Qnpt5L#h&I-z)By|Gf`Qi+HypCuN5efwv{Q8{(Df_GLETBlG7iGxfo|sCt&}>=eE=|X37~}JTgWb>?y=R;p
S3?Zbchs!MkU{w@&N5tRh!X-A0iw9W&Tx<RkOq#j%#Ln-gY!vbUvQHhDzOL-0Fwm{th1%4BjGrNA|Lzp34F`ZPUi4XrLzKX9>beszJuV_c^2*&=QN@h4;m|;
lb+}-d@VUXBo+4_O8O`#E{6Sp9pmc^^JwcE_b>z+0~xZy`lb2?B@urcxCat-J3&43Mmz(?gs5LstVC2EQM@chRE<(#dv%9|jxGfyPE~vQBHt2%7V2e3tMRv<
l1seK?=CtLm%?ZLJfY;-QnK`evKKJ_MC6fNnAFVIYv@lDRIWh`j>;_BcEVDW^K}@EW#Iu^F-?K~VCr*1?rRmoWQCREsut$SbR)?76~y3;W%Kr09>1_zVBm>a
0CaM1Yg~6hqbf0f{fSf|lk7!ehuWtxE3zOZ)fb=kR{1`RszK7QV6d%~wAkgdMD_=hp%Cl>p#WsK5%pKb-~usbyeDlGi8mTirG<56MGDZej%whR*U5cMPy40Y
tfAU2xf~vR51{GZ1~s~1t4U{W;Twt@6Y9B-Yj{$jucB|%Fqt~2;65ho$HU>gU>u^rApHSM8V7&vP~GK$8QC7C91A7fKqQ3$<NA7ZB&7lv^cF3hwFlJUpz=2%
!GKBRZeT~{Wq#8E72+9)vK=cB!CQAfRpj$VcbuD&tzoj7=Pjb}@wi1q?Mey-D!JRo(~=_j(Z6OzXU`v2jP(e4Z>R7MaDl*Lk?F#D$hL>o36hSQ7HZZMEua`Y
$R3;*I*g?roL(RyQtg~b2bDd@E-r=mZUH=LDCYzlXdc4ZLuq43!cf(JqR1P&c<8Lc({jnQBARnAYkd+6=G_pCw2Nh8YN!I$#_={1Yuru=h8}Ebb^pjp<eh5M
f-?Ut5hU1q6GV?Rt6gSblXNQA@1{8SJ=0N6LgI~N0+xmRlbCA>QxPBIq8092JpUyT`P4ZaSNam_A(*t8ZuoB-`OJdqW0KmBerTWdA#b*o$?2nrqGXiz$aEYh
FNY~yZ(%g;M<${CCc>i*KR{ppv5Rt2Qrt;>tBRsYIEtiKvsF$8l1q#aDK9;%!asCIo@%D0@J~P7@mi=FTBMu;qmE)6d8Yl{VWrBu*&twmlMld~s4Cq;mh!BD
D;A+ktY}~y!=GIfh7C8kve|LJnzG|UkbUh+Ey+%|j`l6M8$T>@hutY3W9rR&M6tZEdfLORMD8YY$})BF1I}amKP_-E%W{~1(me!Y`k?SE65SP$k-y_FhVr$X
09T^AU122y)!q`Ped7*N`wVp~ii<TL8g*lQ)W45?E-=YOWbkZUE4jwH%&iPM4PjP_i6Zslu2GV15=o%y5C@FM?Xbj6C}B$VCNP}gcp7H_mIW0*!pKjWfjQiT
tE>SQ6DWnHRhmm;p&orqiqz?@tn4;dm0L0(Vb;tn&V%65Ny<D_+2eJJHUoEXEK>*T+7)jcYw7RO3_lw@t8E%oPocasukvU6%KEsZ<#*4t4U|jpFOGBIc0&``
TCG|&b#6WPCXIzv@?_fNdjmPZG(Y?PVD}W<bmR`!Sk6nkO4ld&9hF;ya>@Wn4}Rk)PI%4bC%+aC(=l>R5;h%<0?d*Jqq2`<-K4_@UvhRknUVZ@L+j7!bIjAu
_&OyH8|`TEpRAVh+C@345}WC%5T)PSRp-pad3{^#@fNe)rvti*BfH;8*?)kq4p<0*u?*P>?po$LxaO8$4p}cu;!o|A>rBn@U&edrGPxtUsCWpi$0a*H^Nu#&
vgLwqfeGXoJnC$;CtSq%-uMmj{ES@bzFCCB)iTfn+c)5{9U-89+HsExuSPC|*QdHOFh0h93~a@S0ccKc`4|9H6QWjE*0hZ8!;U9-46>qCM$+GpUAj0UrJ0&T
B7{F`uY^Fkh+H`4@c>O{0}AGf#f2@W3^bEGeSsK1>_1~XQ1^R4wn8`Qt%w^zelS35kjJPlDmn&LsKEim$W$S9NFB8Gg~?r@KB$-7dyupwka{HWd+hEdLh)7q
8-nQIEDGri!K`aYC7*D)SR6W3tW*(aL7CF+i3*X&yrUf4y-RJzT}6Yj-^D1iwkwjc6*0a~euXE6;xj&9v?D$rV04__Xl9rZ&!I>15*TMnxTi+VC2EdBEPw>i
(i;g~@$7)=?5au$afJHRzTH?60`#EM(G@NUapTYqtt8k-ZEcmhb~!Ri{vIKjVsAn8u1mZ|jEB^FJrfJid~rx;B9b0YpXgvJb4*9jNTl5Lt_6!>JOfW94RJI#
cYE{U+54L09>0r3xmh2q!+uhwMKCm&FDX;50!prD*TLpy18a6qDa}!^Qg1G38H4Vs1gB;BEkvJAPQLC^HV!ax{vIeWli*9a1b|a&LmtUqH89~AqL^O!(af1w
$+VE<`l6l?f>a$p6V4sjy&Pz4l%IS}5nx?$k>xcN2+cM<Bop_z`Hqr>8Qz2=3DrNl6NPP~hf~~*s#M*~Y8Z;SPBEhXeiY}&fgE!_UGw3IOhpKNk@osjL{ouK
wV7A<Rs__fo!Le(XfIn@a8Naz-|mVk-BSj=Lsc*A471x@hYY<C#aYA|gTg9d=iX%0dlx2cl)z!A|DjPq7%>eQZ_~s`g-IzmBojXo7FqFJGzCX_$Kp2LG5Q_c
l%G04&c1Gi@9~9GKK~!+6Q+qMvVTw6g!vrFj?UL|0X{Wb83z_8g_vcxN)^0rW$BN2`$bnlRh|uFtFc}6<>xe3y#tzyhl1t66Cz?&K?4LIP7q~~;I7q~5D`*4
=9&pR&{msCVC`Su15B=ZT^XL9(^y3=Lq@)N70A1Prq)JReWU`GC8Gacz&9lQAEa13kX3MT4mQPkd1NK~`_w<-4+O=HlC?E^K->rymt81a)>UZ`7+20Kv^=<3
F)3qk*pTijn`vknZ?2#gxrJxy&!n~aX3Ehmv>8&z+Lr8TWTTSOr#epbTLLtM4C6@8@;{Mq0YQzi5s-R0jJnG;2HGiy(rxpK5;YfgHwfowR;x7IYh67;6-3!F
#;v|=cCme=`m>~Gvs!}e^}!w^nFWwxopi`osxrXtq`GMNw&q_WB6w#>#fdPh(SeN~Zdt7CT`-E~5LS-rW2;(+7g=Xkm}D<TlmH7DVbX13)5p57++R|HNBD=$
2xC36cPE?|F(8)qDQwo6b~mbPm>6ww`)_(L9H%9UV`v6el6JV%d%t&)QHoE5f2l3@z8Xe$c~WgO1x@3$rYjl7$Pa4h^~1Wo6=h>Cdh#kY4P;FJl@(HufU-J>
G3#MoCZEu=MM&Ji5j}~SDT;8Vh2Qefmx*SeRYZfrIO2B3+?vg-gbsas<*UHEaJIo@tI6r+e)U|<nV7isMd@b&vOryDB$WeSL1}A&IgX+IzUKQEgakpJ&5Sl`
?l*5jx7B{&QW_VusSjV0KgZjCX`o=t!Q1C`{wT_(DMp*i+X8`_T+*FpJi7@0H~+uWyoj29O9Kd|Q~?je-D)cel%!-h{}wOdtbN|Gld*6Vk0`{twpwGXH6-vP
Nstno?~9bz?e>=b4|QxJp457FTWWa~z_dvsLFj}uAlFx?)#k1g3IzEOa6-;%+sy<UOkfxFZO{^Lj2;|CDB2W?>o2~g)<_%Ws7kbK+5RTy>`5R3BrM{04xCU=
$%(Tb>mCx3aNoIec0qP*3}dmvQBGjUI#^QNB`Op*D7n!i7wUPT;E>!>QyF>(dMWOtdU9qlykG3elNNMO%Y~t4q44!I)wbL&r$G@8`0m~rFlWP@a+40WqtgO5
a#wR^{yz9@keq3L*wOtQdyA@MdC<??NC!E&;u*0~=hz!9o&RLiIgS;rSwZY{fuxgR`RsI|WLecEm}BmDg@W2(4Othv$y@{R^&&4?bDch{L^P>C(@f>_c1_!n
1lO0B99>r52{1*RL#_rHBXxc!uWz=Q*FY8P_X*x5T^C=XwJj|mLwH5Q*e*YoDFNdr;t57(^1^oerC>peSBu+JZc<}%_&R<bFrJ_bV&rc7#RPgYpn3GB2DG%T
cIox3xh})jE&1<Rrf1Asf%XFv4w6H%9<FF{B>Z{qZwmH$BElDVW$qD@Dw6DVn?5w(NLTlVMYK0bI`QSPuEq1lDW9nn-T?s?c-kH>eJ;7^Z$v$A3gF819hN;O
)@jMp?FiV1t06YV3D%uch@YRwQnP=GF+@w|;(q+1XdgP64w!G^{Atuxntk7yhfyu|Hy#xHKsfiMEA{GMFjs-rr7))6p!<JsP)4^~7}20>{{U*AW^22b{Arsa
3h3}~|Cu;s=i*>9U{Cx!N(rzP3|eu4h1(Y6Wp0~5H9ZN+<*B*u)?$)_s3-VJ4mI&FmfwTI&fq27suMA`&}Rz6gAMN)i{kpnBh32`3QEJE-!(mLENe&@=rG-Y
OGgkcHbG$%%c@nz)h_@priDaETave4%%(Zs7g9e2uyO2lYmMk&2w;cl!YcK9Sv;g6I<(f@_@Ebf@6LwHJ3U}qKF1O=t{lP}fNA^B!~suWcgV;Edx?i%*uk_5
Vs6m2r(Xlh`r&toMGkr11XtEW2aqO`hpi~K-}}knP@{MzeON9xX`l-ynj%s5R|#+P%pH#Zin~$ZoK12QuVGazE{2td*yCW2>)yDSOeKs$AtQ8wcl6?Mc~SeO
?n;fV7L6sx&=|q&SX<Z(HLeF6t;-6yw@oVB*zmuJpqarc*o=!~AUy6g>unYHH%E?bDJFS0PAu*WcsuT*TeIqiv>f){@aUI{Pai1PxA>CQ<3P%~if8+rrI&4w
`az!8cWp*G&tN`+e?|xEup#-%3jcVldzYhYhgw;45u``%Z2cHFG*V%DkgQ3Tq~uQbLmPxccG9>1Te<q}V1pBhb$LOep^IaC*>NP=FurCWFQs!5Sdx{=Cx*x@
a>3_nN@|;GRbxSa!XXVT*%`@DD>XgH>ypYOPBv;IAL5QEUk#KlS)@%Rx?GW|R#JLeB}n9~5mM{hOgX=n4occ5()Fo6Wt0|ugKhhN@`^!~PW{O9m$97dKH652
hA-}&8-FwIKVA8-{NEX};_*9Mho$)ve*}YWb70T9mf`l@O~Pe;(FRmo!UMHz2p545myvUszFgLZvd$1n4-V#>t=_bZczSUxpqP53Xpey~Up)`-WqQl%V*EZo
^Dy?PImao)L!;SC#Im|(!}nF-WTKD1lc1YordVAI?ybnO({hS}KaUe@eDGS@%?Sdvclp(0Yx(L|XJF9oK?c}UtyIXJDe=_(Qb9^`xHot@g`u__B&!~MjN_SP
4Z#$Fmq9`1si!M0yHYj;K#Y?dpT9zV`%f=WG`FsNUKIS~tVCSsD@*&?r2t{^yz<3XcJ(Jwioz)d2{%EXM4-bVS=0?1Gh^LogDSD#SV<V-TmQBbn&fiTcoQ2X
3C4qHx<})u4}3u`%wVFp%c@Lg+XUlL)r-D8E9l>WZ9#JnH0p*%L%W-A*KaZGC~(rH@9Cqo%#hln+Z2ITw0_NmP~MO-iR(D6j96H@=1FQXm3e5AkWZtwGO0Fz
Fr4>~Z^bnrrLDvtCa8F_$>6Y;T4k&jv<&S%-a%xl$>%U-PIADN_P1#j^=SUkGg9Y)Ij5dGas7NN7u$6&pCScWB{o=RJ;o1)T9{0B0wVQ?Sq44oEqK<i1r%a^
#v`dA1V-!^Ea^770jBm!NV4*LZ6xo!n=1TfQqsi^N1@J(s<4XR`m{Pi=5BbZ3tHq|*m!YAHG!+**ahK1*>{;RTDA(b*-d%zJ0JQ==4$k~l48KbQ%C&pt9E_G
FGq6Vp<AG{zT1%C<ZpF@b!E^>`hX8O-dZacjBsmcIIe|~q3XX-YOXjX4?3`-q$T#1y6%@=OQmP^mOT&b3WgjKaR!V52%W?$e+Ib?LFchDghQ`M^Cz)5L#v&j
+Pwm2!qmd!u@4w&0J{b79ux}ckAG$tEQbv})tGSr28sEwP~w){sJ*DVqo>50Wk|6^o8l=Aycg@&D9r<zk5S4hckI&grDRIc(AgP5vW;RcYm?LOYxow*T9qoI
($s<VAS*3fT@X=2Pf{gy8s}_59@Bg>xEWD1p|kB*LN>DeloEd}(gr6S+duZ$Tprj>yCZIIYYtY20XaEsoW8h45mtyrZECe9ZoM@Q$s**;V%cV#dI^9cvy`ig
Y5U|_>uBWoH?85Q?Id;aye{s5eXbR^nt)~w49HHS9?sncomPL4)w7S^QiA&`Do|fQ9rtdEAMSLIQg1|u9s|nTxc)TojdLRP<A^Hce!H{jJp+t){TP<3^?AXl
&(1UOcyO+t!=+$PL<Yve2fD5uO@!US#YeC3=sGKMGMtUuInTqXiz1kgv`JB1Kxg7E*j$YZ?qJ>btG&D5jT+I3VPoRheDP);F1r)p(SF=x%B%DI4mYfEgV(+@
uMv@2$NUDcTrnBF1w3YtL)sX~akltMNwGYfc|5LwAm@wSp^YgeiVk;-qOWD`8hexePDoI+zWu%jr2+x5lkU9x(i*N<-Sx1enfCCDpjO)?K{~C?l;kgmA0Kd8
w5#5>8NmCg>ehsnm1!8902Ak20WI0BU{4JT{29%!oz#0^EG;^)%3{_`S4Qd>EIz>i7&-kb3WlkfVg{dYQ>VXI(oocKC5!<P5kQQH1g^oe@KG*1nqceNkOWJ^
fL0@f#n0tDDJBl9{qGB%VR4Q|WKk@8+l}_+%^4C;V6nd9Tt_J}{FNTi#dQi`!i-TY&zK4s&shm9_%{+dD6wZ;todwZC_TeIT*EOJM7s`C2^8(In8%z~LV#xC
Ip3l`ANPobV^CnFo%2J0tafXjQ2R4R|Mv`XvV0H0gA``ZW?INa&ecPT)b0mVO(F}z4t&t%wbeWOm^`;JSK1tG8c^Dwa=clWl+tyn#xyz0RHAsgf)*~t=#VYf
koUAyrAzI5Xu-_8MSvl!5JoDQ3p2RGKo2bQM8G?~%n)@pFdvSea27i>X9|?E3^ZH6sw>lc&kOdh^6Hcb7F)B|uog?QWxJp=P|hVs!B3=y|4t*0IolV*)Z~@X
4m%p@yaw8gd+&8vyO`WFQF5h|8x2mk5Vp^Hyl|>bpePmPh(8PSLqtLD&y{zS1AQjMb@vkj2k5a<v;|?7ki9X{HmQ8kq~i>-t=u(At&m46AP^T@O_@w}z9^lB
5-0~(O5-h9yYxnU`<*=U#)+B_)Ak}4=rkm4#jW5>L*HWvHL2Zh0XI2qqBe`!!7u>1-RShL+=7;#MP%6~NYr8knyhPkxjXSQSLarZ7)caZ@C~nD{Rk1U;1>*&
krJ9U6c*?)4>yB=>YmnR-gOB7SO!#sky^*Wj)vBFrx1$bZ|%I8H2}xC#JNMuwIBi;GS=nGxs6ZPQ+j_~8BkSR<aS?YLO*$9$0WXi6o{S5*#?0g8c^21RyGkj
^EXj6bm`M<*`-kBDTCPiwHv%<e-vICkeV+86tbVKxFP)Dpj7#66{Pm7rHoXFkBW)|&f5G7hq!t7f>l9oZ0iUt(FW1bIP&eX9sgJk!$>rTT(8`=F61=P95a5L
R*BmQ-o#MTZZF+p-EO-vc(k!?Nlx?I#f`faY^Uaqh>rO&cUGKaky(ih_bMvgY(dE}*dHlt{XBKg&!mgs%c(004ciU8w{nSh#HSq{c6alku%3pbvWj7k-lkh4
bd1GN#$(ZZyOsI4I&tVqDuVfa+T5lKNkWdGME<wlx@bD-3<SLXXyDo13=r6IH^gdlf;Vv63T;ORtYw7?E>_+a&x(#s_P#v0>R2vSij_?Kk{IF60x8oQSW%%P
w1hKTeC#gM?I>1J9S(pP{|e>OiQuH3IK9qx)|QuOC`{tw;v6|(tA?&1rLT?mm#*w3!9Uw@OF=$&Nu{{%1#vxD9=ZA*;A(vRcDE_w<QoUH;X)9b%F6AOuYRy;
=kte<orYDOIMfbXS-*M|sBw9{I4A(f`t=zVKIT8L78jb!3+FfqoiEt;an2jtkO&5S4oQ4E+RY@8rP}#<OcKC%IN^It84>7pDCTuQR|T)&>7pMG?{EZi_lKL#
jb3CZcQ?$o!<K78dY(OK+9AEZ&n;}}L?nyGi+hSQ24kjsW?~lEA}F$nyPED8f`LT5?%jgXfx1b;8s=zG8rzX*>Oe*jhZ#*f=I(*4)9a0*e&rC{<;t`!A8pu@
29Ox(Y5V$oa_l)`$SF{?3+yYg0#F7k)brhyvKNEpdHx6PpQ!ZMZs5s_zSnOOe{*fSWP4c^H5U3+P!jHwSlEweN~nr-J-QbF*v7IyW?_;^?S8ZqocEOt-BD-E
yTbUteFZRWR_s*ooMgFaXYR8E7aqSK9_f}N*dU70y8_>sO0904?=Id*6TB4c&6#nWRyvG)@a6~Piu8?A3;lA#D+|tybTryxPdF7%#5`0~PM0%Axqf`1er5O7
43YYB0P^T=l~)_PlW$mB%Fmuy6_GmB%{qKCf9Lm1A+!qU+e^~CI_IZlu^#&4o>uf&su-F-a8T#IL)6Qj-~PtH=t29rUa#)w?N^(;3fL)$y(N}}2{0*3e~h;F
h>g%nU7B60lBnAo8}@>U5!~Hqg>dh~I{Vu#l|kkm^Zo1X`d=u${ysEk_*c#-2dyg-QnUo)hXot(*|bMlRpgJal1mZz_DB)&<w}0^*{NpOQ`y@6xA~-2`m9%L
%C6*y=c_5u-5wQAEg;RIpGFR3PX+v_M0SdPR9c;I2wnd`6-W9FdRY1_s}Ys}E9yU#F;zeuA~cZ)tIt#~g3MpX>A^_D{>fOWKK5#g6J!zm;>0U(E3##vfgbS(
&ZEtr(an??!N~vP(NnWga@ek)RzIUYf{k1~L$(Z}{kR<;HK-JtDho~gJCSa1cdDeiq%ixRbO@}&Y9d4PkoiBKU`RW)Or};B0{
"""
